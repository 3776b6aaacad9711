// One answer of the model, streamed with its canvas.
import { events, Failure } from "./api.js";

/**
 * What the model says to `request` (a body of /v1/chat/completions).
 *
 * watch.frame(canvas): after each pass. watch.text(whole): the settled text so far.
 * Gives {text, calls, finish, usage, took}. Throws Failure; AbortError if `signal` ended it.
 */
export async function generate(request, policy, watch, signal) {
  const body = {
    ...request,
    stream: true,
    stream_options: { include_usage: true },
    mezzotint: { canvas: true, ...(policy && { policy }) },
  };
  const answer = { text: "", calls: [], finish: null, usage: null, took: null };
  let ended = false;
  for await (const { kind, data } of events("/v1/chat/completions", body, signal)) {
    if (kind === "canvas") watch.frame?.(data);
    else if (data === null) ended = true;
    else if (data.error) throw new Failure(data.error.message);
    else take(answer, data, watch);
  }
  if (!ended) throw new Failure("the stream ended early", "failCut");
  return answer;
}

function take(answer, chunk, watch) {
  answer.usage = chunk.usage ?? answer.usage;
  answer.took = chunk.mezzotint ?? answer.took;
  const [choice] = chunk.choices ?? [];
  if (!choice) return;
  answer.finish = choice.finish_reason ?? answer.finish;
  for (const part of choice.delta?.tool_calls ?? []) join(answer.calls, part);
  if (choice.delta?.content) {
    answer.text += choice.delta.content;
    watch.text?.(answer.text);
  }
}

/** A piece of a tool call, put where it belongs. */
function join(calls, part) {
  const call = (calls[part.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
  if (part.id) call.id = part.id;
  call.function.name += part.function?.name ?? "";
  call.function.arguments += part.function?.arguments ?? "";
}

/** Figures of an answer, for a meter or a sentence. */
export function figures({ took, usage }) {
  return {
    passes: took?.passes ?? 0,
    rate: took?.tokens_per_pass ?? 0,
    ms: took?.decode_ms ?? 0,
    cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    prompt: usage?.prompt_tokens ?? 0,
  };
}
