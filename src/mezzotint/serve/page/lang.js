// The page's language: the browser's, until the reader chooses; the choice is kept.
import { recall, remember } from "./kept.js";
import { WORDS } from "./words.js";

const COLUMN = { en: 0, zh: 1 };
const preferred = (navigator.languages ?? [navigator.language]).find((tag) => /^(en|zh)\b/i.test(tag));
let language = recall("language", null) ?? (preferred?.toLowerCase().startsWith("zh") ? "zh" : "en");

export const current = () => language;

/** The phrase `key`, its {names} replaced by `values`. */
export function t(key, values = {}) {
  const pair = WORDS[key];
  if (!pair) throw new Error(`words.js has no ${key}`);
  return pair[COLUMN[language]].replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** A number as readers of the language write it. */
export function number(value, digits = 0) {
  return value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function shown(value) {
  return typeof value === "number" ? number(value, Number.isInteger(value) ? 0 : 1) : String(value);
}

/** Write the phrases that a node asks for: its text, its label, its hint. */
export function label(node) {
  const { t: key, tValues, tLabel, tHint } = node.dataset;
  if (key) node.textContent = t(key, JSON.parse(tValues ?? "{}"));
  if (tLabel) node.setAttribute("aria-label", t(tLabel));
  if (tHint) node.setAttribute("placeholder", t(tHint));
}

/** Write the whole page in the current language. */
export function relabel() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.querySelectorAll("[data-t],[data-t-label],[data-t-hint]").forEach(label);
}

export function choose(next) {
  language = next;
  remember("language", next);
  relabel();
  document.dispatchEvent(new CustomEvent("language"));
}
