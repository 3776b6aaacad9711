// The page: its views by address, its language, its colours, and the server's key.
import { useKey } from "./api.js";
import { $, say } from "./dom.js";
import { choose, current, relabel, t } from "./lang.js";
import { reach } from "./health.js";
import { remember } from "./kept.js";
import { legend } from "./plate.js";
import "./chat.js";
import "./canvas.js";
import "./race.js";
import "./revise.js";
import "./agent.js";

const VIEWS = ["chat", "canvas", "race", "revise", "agent"];
const dark = matchMedia("(prefers-color-scheme: dark)");

function open(moved) {
  const name = VIEWS.find((view) => `#${view}` === location.hash) ?? VIEWS[0];
  for (const view of VIEWS) {
    $(`view-${view}`).hidden = view !== name;
    const link = document.querySelector(`nav a[href="#${view}"]`);
    if (view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${t(name)} · Mezzotint`;
  if (moved) $(`title-${name}`).focus(); // the reader's place is the new view
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark.matches;
}

function labels() {
  const other = current() === "zh" ? "en" : "zh";
  $("language").textContent = other === "zh" ? "中文" : "English";
  $("language").lang = other;
  say($("theme"), isDark() ? "themeLight" : "themeDark");
  legend($("legend"));
  open(false);
}

$("language").addEventListener("click", () => choose(current() === "zh" ? "en" : "zh"));
$("theme").addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  remember("theme", next);
  labels();
});
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey($("key-value").value);
  $("key").hidden = true;
  reach();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the view
  $("main").focus();
});
document.addEventListener("key", () => ($("key").hidden = false));
document.addEventListener("language", labels);
dark.addEventListener("change", labels);
window.addEventListener("hashchange", () => open(true));

relabel();
labels();
reach();
