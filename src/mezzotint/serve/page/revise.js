// Revise: change a part of a text and see what depends on it change, and nothing else.
import { json } from "./api.js";
import { $, announce, el, fail, meter, say, worker } from "./dom.js";
import { number, t } from "./lang.js";
import { edited, now, slice, split, trimmed, whole, without } from "./parts.js";

const plate = $("revise-plate");
const part = $("revise-part");
const field = $("revise-new");

let text = "";
let edits = []; // {start, end, text}, in order
let keeps = []; // {start, end}
let open = null; // the range that is being edited
let answer = null;

/** Begin with a text that nothing was done to. */
function take(next) {
  [text, edits, keeps, open, answer] = [next, [], [], null, null];
  part.hidden = true;
  $("revise-result").hidden = true;
  fail($("revise-failure"), null);
  $("revise-desk").hidden = false;
  $("revise-source").hidden = true;
  draw(0);
}

/** The text as parts that can be picked; edits and what is kept are marked. */
function draw(focus = null) {
  const parts = [];
  let at = 0;
  for (const word of split(text, "word")) {
    if (word.start < at) continue; // within an edit that was drawn
    const edit = edits.find(({ start, end }) => start < word.end && word.start < end);
    const { start, end } = edit ? whole(edit, edits) : word;
    if (edit && edit.start > word.start) parts.push(slice(text, word.start, edit.start));
    at = end;
    if (edit) parts.push(button(edit, edit.text || "∅", "edited", ["editedPart", { before: slice(text, start, end), after: edit.text }]));
    else if (!word.wordLike) parts.push(word.text);
    else {
      const kept = keeps.some((range) => range.start < end && start < range.end);
      parts.push(button(word, word.text, kept ? "kept" : "", kept ? ["keptPart", { text: word.text }] : null));
    }
  }
  plate.replaceChildren(...parts);
  const buttons = [...plate.querySelectorAll("button")];
  const chosen = buttons.find((one) => Number(one.dataset.start) >= (focus ?? 0)) ?? buttons[0];
  if (chosen) chosen.tabIndex = 0;
  if (focus !== null) chosen?.focus();
}

function button({ start, end }, shown, kind, name) {
  const node = el("button", { type: "button", class: `part-of ${kind}`, tabindex: "-1", "data-start": start }, shown);
  if (name) node.setAttribute("aria-label", t(...name));
  node.addEventListener("click", () => pick({ start, end }));
  return node;
}

/** Open the part at `range`, or its sentence. */
function pick(range) {
  const unit = document.querySelector("[name=unit]:checked").value;
  const sentence = split(text, "sentence").find(({ start, end }) => start <= range.start && range.start < end);
  open = whole(unit === "sentence" && sentence ? trimEnd(sentence) : range, edits);
  field.value = now(text, open, edits);
  say($("revise-keep"), isKept(open) ? "letChange" : "keepPart");
  part.hidden = false;
  field.focus();
  field.select();
}

const isKept = (range) => without(keeps, range).length < keeps.length;

function trimEnd({ start, end, text: sentence }) {
  return { start, end: end - ([...sentence].length - [...sentence.trimEnd()].length) };
}

function close(range) {
  part.hidden = true;
  open = null;
  draw(range.start);
}

part.addEventListener("submit", (event) => {
  event.preventDefault();
  const range = open;
  const same = field.value === slice(text, range.start, range.end);
  edits = same ? without(edits, range) : edited(edits, { ...range, text: field.value });
  keeps = without(keeps, range);
  close(range);
});
$("revise-keep").addEventListener("click", () => {
  const range = open;
  keeps = isKept(range) ? without(keeps, range) : [...keeps, range];
  edits = without(edits, range);
  close(range);
});
$("revise-cancel").addEventListener("click", () => close(open));
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "Escape") close(open);
  else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    part.requestSubmit();
  }
});

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
plate.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = [...plate.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  const next = buttons[Math.max(0, Math.min(buttons.length - 1, at + step))];
  buttons.forEach((one) => (one.tabIndex = one === next ? 0 : -1));
  next.focus();
});

async function revise(signal) {
  const instruction = $("revise-instruction").value.trim();
  fail($("revise-failure"), null);
  const wrong = edits.length && instruction ? "editOrSay" : !edits.length && !instruction ? "nothingToRevise" : null;
  if (wrong) return fail($("revise-failure"), { key: wrong });
  const change = instruction ? { instruction } : { edits: edits.map((edit) => trimmed(text, edit)) };
  const body = { text, keep: keeps.map(({ start, end }) => ({ start, end })), ...change };
  plate.setAttribute("aria-busy", "true");
  try {
    show(await json("/v1/revise", body, signal));
  } catch (failure) {
    if (failure.name !== "AbortError") fail($("revise-failure"), failure);
  } finally {
    plate.removeAttribute("aria-busy");
  }
}

function show(revision) {
  answer = revision;
  const { spans, reused_tokens: reused, tokens, mezzotint: took } = revision;
  const parts = [];
  let at = 0;
  for (const { start, end, before, after, why } of spans) {
    const kind = why === "edit" ? "own" : "follows";
    parts.push(slice(revision.text, at, start));
    if (before) parts.push(el("del", { class: kind }, before));
    if (after) parts.push(el("ins", { class: kind }, after));
    at = end;
  }
  $("revise-diff").replaceChildren(...parts, slice(revision.text, at));
  meter($("revise-meter"), [
    ["reused", t("reusedOf", { reused, all: tokens })],
    ["passes", took.passes],
    ["time", `${number(took.decode_ms, 1)} ms`],
  ]);
  reasons(spans.filter(({ why }) => why !== "edit"));
  $("revise-result").hidden = false;
  announce(`${t("changes")}: ${$("revise-why").textContent}`);
}

function reasons(follows) {
  const told = follows.map(({ before, after, why }) =>
    el("li", {}, el("span", { t: ["became", { before: before.trim(), after: after.trim() }] }), " ", el("small", {}, why)));
  $("revise-why").replaceChildren(...(told.length ? told : [el("li", { t: "nothingChanged" })]));
}

worker($("revise-form"), revise);
$("revise-source").addEventListener("submit", (event) => {
  event.preventDefault();
  take($("revise-text").value);
});
$("revise-back").addEventListener("click", () => {
  $("revise-desk").hidden = true;
  $("revise-source").hidden = false;
  $("revise-text").value = text;
  $("revise-text").focus();
});
$("revise-accept").addEventListener("click", () => {
  $("revise-instruction").value = "";
  take(answer.text);
});

const source = $("revise-text");
let example = (source.value = t("reviseText"));
document.addEventListener("language", () => {
  if (source.value === example) source.value = t("reviseText");
  example = t("reviseText");
});
