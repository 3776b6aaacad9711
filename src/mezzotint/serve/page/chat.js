// Chat: what was said, kept for the tab; the newest answer comes out of its plate.
import { $, announce, el, fail, worker } from "./dom.js";
import { number, t } from "./lang.js";
import "./choices.js";
import { figures, generate } from "./generation.js";
import { modelName } from "./health.js";
import { recall, remember } from "./kept.js";
import { Plate } from "./plate.js";
import { paced } from "./recording.js";
import { argumentsOf, offering } from "./tools.js";

const talk = $("talk");
/** Messages as the API has them; an answer also has `cut` or `failure` if it did not end well. */
let said = recall("chat", [], "sessionStorage");
let running = null; // the answer that is being written
let leaving = false;

const keep = () => remember("chat", said, "sessionStorage");

/** What the model is shown: everything that was said, answers that never began left out. */
function messages() {
  return said
    .filter(({ role, content, tool_calls }) => role !== "assistant" || content || tool_calls)
    .map(({ role, content, tool_calls, tool_call_id }) => ({ role, content, tool_calls, tool_call_id }));
}

async function answer(signal) {
  const one = { role: "assistant", content: "", cut: true }; // until it has ended
  const asked = $("chat-tools").checked ? offering(messages()) : { messages: messages() };
  said.push((running = one));
  const card = show(one);
  const node = card.querySelector(".plate");
  const plate = new Plate(node);
  const draw = paced(({ cells }) => {
    if (one !== running) return;
    plate.show(cells);
    card.scrollIntoView({ block: "nearest" });
  });
  card.setAttribute("aria-busy", "true");
  let last = null;
  const watch = { frame: (canvas) => draw((last = canvas)), text: (text) => (one.content = text) };
  try {
    const request = { model: await modelName(), ...asked, max_tokens: 384 };
    const made = await generate(request, $("chat-mode").value, watch, signal);
    plate.show(last?.cells ?? []);
    delete one.cut;
    Object.assign(one, { took: figures(made), finish: made.finish });
    if (made.calls.length) Object.assign(one, { content: one.content || null, tool_calls: made.calls });
  } catch (failure) {
    if (failure.name !== "AbortError" && !leaving) one.failure = { message: failure.message, key: failure.key, values: failure.values };
  }
  running = null;
  if (!said.includes(one)) return; // a new chat began meanwhile
  keep();
  const ended = show(one, one.cut || !last ? null : node);
  card.replaceWith(ended);
  ended.scrollIntoView({ block: "nearest" });
  announce(heard(one));
}

/** What is read aloud of an answer that ended. */
function heard({ content, tool_calls, failure, cut }) {
  if (failure) return failure.key ? t(failure.key, failure.values) : failure.message;
  if (cut) return t("interrupted");
  if (!tool_calls) return t("answered", { text: content });
  return t("calls", { name: tool_calls.map((call) => call.function.name).join(", ") });
}

/** One message as it stands at the end of the talk. plate: of a finished answer, drawn already. */
function show(message, plate = null) {
  const { role } = message;
  const who = { user: "you", assistant: "model", tool: "tool" }[role];
  const card = el("article", { class: `said ${role}` }, el("h2", { t: who }));
  if (role === "assistant") card.append(...answered(message, plate));
  else card.append(el("p", {}, message.content));
  $("chat-empty")?.remove();
  talk.querySelectorAll(".again, .result").forEach((node) => node.remove()); // of earlier answers
  if (!card.isConnected) talk.append(card);
  return card;
}

function answered(message, plate) {
  const { content, tool_calls, took, cut, failure, finish } = message;
  const parts = [];
  if (plate) parts.push(plate);
  else if (content || !tool_calls) parts.push(el("div", { class: "plate" }, content ?? ""));
  for (const call of tool_calls ?? []) parts.push(called(call));
  if (took) {
    const shown = { ...took, rate: number(took.rate, 1), ms: number(took.ms) };
    parts.push(el("p", { class: "took", t: ["took", shown] }));
  }
  if (finish === "length") parts.push(el("p", { class: "took", t: "atLength" }));
  if (failure) {
    const note = el("p", { class: "failure" });
    fail(note, failure);
    parts.push(note);
  } else if (cut && message !== running) parts.push(el("p", { class: "took", t: "interrupted" }));
  if (cut && message !== running) parts.push(el("button", { type: "button", class: "again", t: "again", on: { click: retry } }));
  if (tool_calls) parts.push(result(tool_calls));
  return parts;
}

function called(call) {
  const pairs = argumentsOf(call);
  const rows = pairs?.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, JSON.stringify(value))));
  return el("dl", { class: "call" }, el("div", { class: "callee" }, el("dt", {}, call.function.name), el("dd")), ...(rows ?? []));
}

/** The form that stands for the tools: whoever chats says what they bring. */
function result(calls) {
  const field = el("input", { type: "text", value: '{"ok":true}', required: true });
  const act = (event) => {
    event.preventDefault();
    for (const { id } of calls) add({ role: "tool", tool_call_id: id, content: field.value });
    start(true);
  };
  return el("form", { class: "row result", on: { submit: act } },
    el("label", { class: "grow" }, el("span", { t: "toolResult" }), " ", field),
    el("button", { type: "submit", t: "sendResult" }));
}

function add(message) {
  said.push(message);
  keep();
  show(message);
}

function retry() {
  said.pop();
  keep();
  render();
  text.focus();
  start(true);
}

function render() {
  talk.replaceChildren();
  said.forEach((message) => show(message));
  if (!said.length) talk.append(el("p", { id: "chat-empty", class: "plate empty", t: "empty" }));
}

const form = $("chat-form");
const text = $("chat-text");
const start = worker(form, async (signal, again) => {
  const asked = text.value.trim();
  if (!again && !asked) return;
  if (!again) {
    add({ role: "user", content: asked });
    text.value = "";
  }
  await answer(signal);
});
$("chat-new").addEventListener("click", () => {
  form.querySelector(".stop").click();
  said = [];
  keep();
  render();
  text.focus();
});
window.addEventListener("beforeunload", () => (leaving = true)); // what fails now was cut by the reader
window.addEventListener("pageshow", () => (leaving = false));
window.addEventListener("pagehide", keep); // what had come stays
render();
