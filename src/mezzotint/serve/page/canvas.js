// Canvas: one text while it is denoised, and back through its passes.
import { $, announce, fail, meter, say, worker } from "./dom.js";
import { number, t } from "./lang.js";
import "./choices.js";
import { figures, generate } from "./generation.js";
import { modelName } from "./health.js";
import { Plate } from "./plate.js";
import { Clock, Recording, paced } from "./recording.js";
import { offering } from "./tools.js";

const plate = new Plate($("canvas-plate"));
const scrub = $("canvas-scrub");
const play = $("canvas-play");
let record = new Recording();
let made = null; // figures of the finished text

const clock = new Clock(
  (ms) => show(record.before(ms)),
  () => say(play, "play"),
);

/** Show the canvas after `count` passes. */
function show(count) {
  const { frames } = record;
  const frame = frames[count - 1];
  scrub.max = frames.length;
  scrub.value = count;
  const told = t("passOf", { pass: count, all: frames.length });
  scrub.setAttribute("aria-valuetext", told);
  plate.show(frame?.cells ?? dark(frames[0]));
  meter($("canvas-meter"), [
    ["pass", `${count} / ${frames.length}`],
    ["time", `${number(frame?.at ?? 0, 1)} ms`],
    ["thisPass", frame ? `${number(frame.ms, 1)} ms` : "–"],
    ["rows", frame?.rows ?? "–"],
    ["settled", frame?.settled ?? 0],
    ["perPass", made && number(made.rate, 2)],
  ]);
}

/** The first plate: as many masks as the first pass saw. */
const dark = (first) => first?.cells.map((cell) => ({ ...cell, state: "masked" })) ?? [];

function controls(enabled) {
  play.disabled = scrub.disabled = !enabled;
}

async function write(signal) {
  clock.stop();
  [record, made] = [new Recording(), null];
  fail($("canvas-failure"), null);
  controls(false);
  show(0);
  const draw = paced(show);
  const prompt = $("canvas-text").value;
  const messages = [{ role: "user", content: prompt }];
  const most = Number($("canvas-length").value);
  try {
    const request = { model: await modelName(), messages, max_tokens: most };
    if ($("canvas-tools").checked) Object.assign(request, offering(messages));
    const frame = (canvas) => {
      record.add(canvas);
      draw(record.length);
    };
    made = figures(await generate(request, $("canvas-mode").value, { frame }, signal));
    announce(t("written", { passes: made.passes, ms: Math.round(made.ms) }));
  } catch (failure) {
    if (failure.name !== "AbortError") fail($("canvas-failure"), failure);
  }
  draw.stop();
  show(record.length);
  controls(record.length > 0);
}

scrub.addEventListener("input", () => {
  clock.stop();
  show(Number(scrub.value));
});
play.addEventListener("click", () => {
  if (clock.runs) return clock.stop();
  const count = Number(scrub.value);
  const from = count < record.length ? (record.frames[count - 1]?.at ?? 0) : 0;
  say(play, "pause");
  clock.play(from, record.duration, () => Number($("canvas-speed").value));
});
worker($("canvas-form"), write);
$("canvas-mode").value = "threshold:0.9"; // the one that most looks like engraving

const text = $("canvas-text");
let example = (text.value = t("canvasPrompt"));
document.addEventListener("language", () => {
  if (text.value === example) text.value = t("canvasPrompt");
  example = t("canvasPrompt");
  if (record.length) show(Number(scrub.value));
});
show(0);
