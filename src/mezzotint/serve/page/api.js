// The server, as the page asks it: JSON and server-sent events over fetch, failures with a name.
import { recall, remember } from "./kept.js";

/** What went wrong: `key` of words.js with `values`, or the server's own message. */
export class Failure extends Error {
  constructor(message, key = null, values = {}, status = 0) {
    super(message);
    Object.assign(this, { key, values, status });
  }
}

let key = recall("key", "", "sessionStorage");

export function useKey(value) {
  key = value;
  remember("key", value, "sessionStorage"); // for this tab only
}

/** The answer to a request. Throws Failure, or AbortError if `signal` ended it. */
async function ask(path, body, signal) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const options = { headers, signal, cache: "no-store" };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    throw named(error, "failAway");
  }
  if (!answer.ok) throw await refused(answer);
  return answer;
}

export async function json(path, body, signal) {
  const answer = await ask(path, body, signal);
  try {
    return await answer.json();
  } catch (error) {
    throw named(error, "failCut");
  }
}

/** Events {kind, data} of a stream, to its end; `[DONE]` is told as data null. */
export async function* events(path, body, signal) {
  const answer = await ask(path, body, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      yield* blocks.map(parsed).filter(Boolean);
    }
  } catch (error) {
    throw named(error, "failCut");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** One event's block of lines; comments alone are none. */
export function parsed(block) {
  let kind = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (name === "event") kind = value;
    if (name === "data") data.push(value);
  }
  if (!data.length) return null;
  const text = data.join("\n");
  return { kind, data: text === "[DONE]" ? null : JSON.parse(text) };
}

function named(error, key) {
  if (error instanceof Failure || error.name === "AbortError") return error;
  document.dispatchEvent(new CustomEvent("away"));
  return new Failure(error.message, key);
}

async function refused(answer) {
  const { status } = answer;
  if (status === 401) {
    document.dispatchEvent(new CustomEvent("key"));
    return new Failure("401", "failKey", {}, status);
  }
  if (status === 429) {
    const seconds = Number(answer.headers.get("retry-after")) || 1;
    return new Failure("429", "failBusy", { seconds }, status);
  }
  const told = await answer.json().catch(() => null);
  if (told?.error?.code === "model_not_found") document.dispatchEvent(new CustomEvent("away")); // another one is there
  return new Failure(told?.error?.message ?? `HTTP ${status}`, null, {}, status);
}
