// Menus that several views share: how to decode, how fast to replay.
import { el } from "./dom.js";

const MODES = { "": "modeAuto", exact: "modeExact", fast: "modeFast", "threshold:0.9": "modeAny", ar: "modeAr" };
const SPEEDS = { 1: "1×", 0.2: "⅕×", 0.04: "1⁄25×" };

for (const menu of document.querySelectorAll("[data-modes]")) {
  menu.append(...Object.entries(MODES).map(([value, key]) => el("option", { value, t: key })));
}
for (const menu of document.querySelectorAll("[data-speeds]")) {
  menu.append(...Object.entries(SPEEDS).map(([value, text]) => el("option", { value }, text)));
  menu.value = "0.04"; // a pass takes milliseconds: slow enough to see
}
