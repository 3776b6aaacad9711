// Elements from values. Text is only ever set as text: the page parses no markup it makes.
import { label } from "./lang.js";

export const $ = (id) => document.getElementById(id);

/**
 * A new element. `t`: a key of words.js, or [key, values]; `class`; `on`: listeners by event;
 * `true` and `false` set and leave out an attribute; anything else is an attribute.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "t") say(node, ...[value].flat());
    else if (name === "on") for (const [type, act] of Object.entries(value)) node.addEventListener(type, act);
    else if (typeof value === "boolean") node.toggleAttribute(name, value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Make `node` say a phrase, in whatever language the page is then. */
export function say(node, key, values = {}) {
  node.dataset.t = key;
  node.dataset.tValues = JSON.stringify(values);
  label(node);
}

/** Tell people who hear the page rather than see it. */
export function announce(text) {
  const live = $("live");
  live.textContent = "";
  requestAnimationFrame(() => (live.textContent = text));
}

/** A list of terms and values: what a run took. */
export function meter(node, pairs) {
  const entries = pairs.filter(([, value]) => value != null);
  node.replaceChildren(
    ...entries.map(([key, value]) => el("div", {}, el("dt", { t: key }), el("dd", {}, String(value)))),
  );
}

/** Show a failure in `node`, or none. */
export function fail(node, failure) {
  node.hidden = !failure;
  if (!failure) node.replaceChildren();
  else if (failure.key) say(node, failure.key, failure.values);
  else {
    delete node.dataset.t;
    node.textContent = failure.message;
  }
}

/**
 * A form that starts one piece of work at a time: Enter starts it, its stop button ends it.
 * Gives what starts it too: work(signal, given), `given` undefined where the form was sent.
 */
export function worker(form, work) {
  const [go, stop] = [form.querySelector("[type=submit]"), form.querySelector(".stop")];
  const text = form.querySelector("textarea");
  let ends = null;
  const start = async (given) => {
    if (ends) return;
    ends = new AbortController();
    go.disabled = true;
    if (stop) stop.hidden = false;
    try {
      await work(ends.signal, given);
    } finally {
      const held = document.activeElement === stop;
      ends = null;
      go.disabled = false;
      if (stop) stop.hidden = true;
      if (held) (text ?? go).focus();
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start();
  });
  stop?.addEventListener("click", () => ends?.abort());
  text?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return; // an IME's Enter is its own
    event.preventDefault();
    form.requestSubmit();
  });
  return start;
}
