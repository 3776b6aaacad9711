// The agent: what it plans, does and asks, event by event; approve, deny, undo.
import { Failure, events, json } from "./api.js";
import { $, announce, el, fail, worker } from "./dom.js";
import { number, t } from "./lang.js";
import { Plate } from "./plate.js";
import { paced } from "./recording.js";

const log = $("agent-log");
const text = $("agent-text");
let session = null;
let turn = null; // what is shown of the request that runs

/** A request and what comes of it. */
class Turn {
  steps = new Map();
  plans = 0;

  constructor(request) {
    this.list = el("ol", { class: "events" });
    this.node = el("article", { class: "turn" }, el("h2", {}, request), this.list);
    log.prepend(this.node);
  }

  add(kind, ...children) {
    const item = el("li", { class: `event ${kind}` }, ...children);
    this.list.append(item);
    return item;
  }

  /** The plate that the model writes on; the next event ends it. */
  write({ cells }) {
    this.cells = cells;
    if (!this.plate) {
      const node = el("div", { class: "plate", role: "group", "data-t-label": "planning", "aria-label": t("planning") });
      const plate = (this.plate = new Plate(node));
      this.draw = paced((now) => plate.show(now));
      this.add("writing", node);
    }
    this.draw(cells);
  }

  written() {
    this.draw?.stop();
    this.plate?.show(this.cells);
    this.plate = null;
  }

  fail(failure) {
    const note = el("p", { class: "failure", role: "alert" });
    fail(note, failure);
    this.add("failed", note);
  }
}

/** How each kind of event is shown. */
const SHOWN = {
  session: ({ id }) => (session = id),
  canvas: (data) => turn.write(data),
  chosen: ({ tools }) => turn.add("chosen", el("p", { t: ["chosen", { tools: tools.join(", ") }] })),
  planned({ first, calls, timing }) {
    const steps = calls.map((one, at) => step(first + at, one));
    turn.add("planned", el("h3", { t: "plan" }), el("ol", { start: first + 1 }, ...steps), took(timing));
  },
  revised({ spans, timing }) {
    const lines = spans.map(({ before, after, masked }) =>
      el("li", masked ? {} : { class: "stays" }, ...(masked ? [el("del", {}, called(before)), el("ins", {}, called(after, before))] : [called(after)])));
    turn.add("revised", el("h3", { t: "rewritten" }), el("ol", {}, ...lines), took(timing));
  },
  asked: (about) => (turn.about = about),
  did({ step: number, call, outcome, seconds }) {
    const told = outcome.error || outcome.said || (outcome.data == null ? "" : JSON.stringify(outcome.data));
    const ms = Math.round(1e3 * seconds);
    const ended = outcome.error ? el("b", { t: "failed" }) : el("b", { t: ["doneIn", { ms }] });
    turn.add(outcome.error ? "did bad" : "did", el("p", {}, mark(number), el("code", {}, call.name), " ", ended), el("p", {}, told));
    turn.steps.get(number)?.classList.add(outcome.error ? "bad" : "good");
  },
  refused({ step: number, call, why }) {
    turn.add("refused", el("p", {}, mark(number), el("code", {}, call.name), " ", el("b", { t: ["refused", { why }] })));
  },
  consent: (asked) => consent(asked),
  said({ text: answer, question, timing }) {
    const item = turn.add("answer", el("p", { class: "say" }, answer));
    if (question) item.append(el("p", { class: "note", t: "replyAsked" }));
    if (turn.plans > 1) item.append(took(timing)); // of all together
    announce(answer);
  },
  error: ({ error }) => turn.fail(new Failure(error.message)),
  message: (data) => SHOWN.error(data), // the server failed outside the agent
};

const mark = (number) => el("span", { t: ["didStep", { step: number + 1 }], class: "step" });

function step(number, call) {
  const node = el("li", {}, called(call));
  turn.steps.set(number, node);
  return node;
}

/** A call: its name, and what its holes were filled with; those that differ from `other` marked. */
function called({ name, arguments: given }, other = null) {
  const holes = Object.entries(given).map(([key, value]) => {
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    const fresh = other && JSON.stringify(other.arguments[key]) !== JSON.stringify(value);
    return el("span", { class: fresh ? "hole fresh" : "hole" }, el("i", {}, key), shown);
  });
  return el("span", { class: "called" }, el("code", {}, name), ...holes);
}

function took({ seconds, passes, tokens, forced }) {
  turn.plans += 1;
  const figures = { ms: number(1e3 * seconds), passes, rate: number(tokens / Math.max(passes, 1), 1), forced };
  return el("p", { class: "took", t: ["agentTook", figures] });
}

/** Ask the user; the server waits for the reply. */
function consent({ id, call }) {
  const { preview, strange = [], unknown } = turn.about ?? {};
  turn.about = null;
  const question = el("h3", { t: "consentAsked", id: `consent-${id}` });
  const note = el("p", { class: "failure", role: "alert", hidden: true });
  const reply = async (allow) => {
    buttons.forEach((one) => (one.disabled = true));
    try {
      await json(`/v1/agent/${session}/consent`, { id, allow });
      row.replaceWith(el("p", { t: allow ? "approved" : "denied" }));
      text.focus();
    } catch (failure) {
      fail(note, failure);
      buttons.forEach((one) => (one.disabled = false));
    }
  };
  const buttons = [
    el("button", { type: "button", class: "main", t: "approve", on: { click: () => reply(true) } }),
    el("button", { type: "button", t: "deny", on: { click: () => reply(false) } }),
  ];
  const row = el("div", { class: "row" }, ...buttons);
  const more = [];
  if (preview?.to.length) more.push(el("p", { t: ["consentTo", { to: preview.to.join(", ") }] }));
  if (preview?.subject) more.push(el("p", { t: ["consentSubject", { subject: preview.subject }] }));
  for (const text of [preview?.text, preview?.about].filter(Boolean)) more.push(el("blockquote", {}, text));
  if (strange.length) more.push(el("p", { class: "failure", t: ["consentStrange", { names: strange.join(", ") }] }));
  if (unknown) more.push(el("p", { class: "failure", t: "consentUnknown" }));
  const box = el("div", { role: "group", "aria-labelledby": question.id, class: "consent" }, question, called(call), ...more, row, note);
  turn.add("asks", box);
  announce(t("consentAsked"));
  buttons[1].focus(); // what Enter does by accident must be harmless
}

async function ask(signal) {
  const request = text.value.trim();
  if (!request) return;
  text.value = "";
  const mine = (turn = new Turn(request));
  log.setAttribute("aria-busy", "true");
  $("agent-undo").disabled = true;
  try {
    let ended = false;
    for await (const { kind, data } of events("/v1/agent", { request, ...(session && { session }) }, signal)) {
      if (kind !== "canvas") mine.written();
      ended ||= kind === "end";
      SHOWN[kind]?.(data);
    }
    if (!ended) throw new Failure("the stream ended early", "failCut");
  } catch (failure) {
    if (failure.status === 404) session = null; // the server began anew: so does the talk
    if (failure.name === "AbortError") mine.add("stopped", el("p", { t: "interrupted" }));
    else mine.fail(failure);
  } finally {
    mine.written();
    mine.node.querySelectorAll(".consent button").forEach((one) => (one.disabled = true));
    log.removeAttribute("aria-busy");
    $("agent-undo").disabled = false;
  }
}

async function undo() {
  const item = new Turn(t("undo"));
  try {
    const { request, restored, kept } = await json("/v1/agent/undo", {});
    if (!request && !restored.length && !kept.length) item.add("answer", el("p", { t: "nothingToUndo" }));
    else {
      item.add("answer", el("p", { t: ["undone", { request }] }));
      for (const what of restored) item.add("undone", el("p", { t: ["noLonger", { what }] }));
      for (const why of kept) item.add("undone", el("p", { t: ["keptBack", { why }] }));
    }
    announce(item.list.textContent);
  } catch (failure) {
    item.fail(failure);
  }
}

worker($("agent-form"), ask);
$("agent-undo").addEventListener("click", undo);
for (const key of ["idea1", "idea2", "idea3"]) {
  const idea = el("button", { type: "button", class: "idea", t: key });
  idea.addEventListener("click", () => {
    text.value = idea.textContent;
    text.focus();
  });
  $("agent-ideas").append(el("li", {}, idea));
}
