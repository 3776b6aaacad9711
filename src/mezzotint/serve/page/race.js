// Race: AR and diffusion on the same weights and prompt, by turns, then replayed side by side.
import { $, announce, el, fail, meter, say, worker } from "./dom.js";
import { number, t } from "./lang.js";
import "./choices.js";
import { figures, generate } from "./generation.js";
import { modelName } from "./health.js";
import { Plate } from "./plate.js";
import { Clock, Recording, paced } from "./recording.js";
import { offering } from "./tools.js";

const GAP = 250; // milliseconds between pictures while the clock counts: painting takes time too

/** One of the two: where it is shown, and its rounds {record, made}. */
class Lane {
  rounds = [];

  constructor(key, policy) {
    Object.assign(this, { key, policy });
    this.time = el("p", { class: "clock", role: "timer", "aria-live": "off" }, "0.0");
    this.figures = el("dl", { class: "meter" });
    const plate = el("div", { class: "plate", role: "group", "data-t-label": "plate" });
    this.node = el("article", { class: "lane" }, el("h2", { t: key }), this.time, plate, this.figures);
    this.plate = new Plate(plate);
  }

  /** The round whose decoding took the median time. */
  get middle() {
    const sorted = [...this.rounds].sort((a, b) => a.made.ms - b.made.ms);
    return sorted[(sorted.length - 1) >> 1];
  }

  clear() {
    this.rounds = [];
    this.plate.clear();
    this.figures.replaceChildren();
    this.at(0);
  }

  at(ms) {
    this.time.textContent = `${number(ms, 1)} ms`;
  }

  /** Show the plate of a recording as it was `ms` after its start. */
  show(record, ms) {
    const frame = record.frames[record.before(ms) - 1];
    this.at(Math.min(ms, record.duration));
    this.plate.show(frame?.cells ?? []);
    this.node.classList.toggle("home", ms >= record.duration);
  }

  sum() {
    const { made } = this.middle;
    meter(this.figures, [
      ["median", `${number(made.ms, 1)} ms`],
      ["passes", made.passes],
      ["perPass", number(made.rate, 2)],
      ["prefill", `${number(made.prefill, 1)} ms`],
      ["cachedTokens", `${made.cached} / ${made.prompt}`],
      ["each", this.rounds.length > 1 ? this.rounds.map(({ made }) => number(made.ms, 0)).join(" · ") : null],
    ]);
  }
}

const ar = new Lane("laneAr", () => "ar");
const diffusion = new Lane("laneDiffusion", () => $("race-mode").value);
const lanes = [ar, diffusion];
$("lanes").append(...lanes.map(({ node }) => node));
const scrub = $("race-scrub");
const play = $("race-play");

const clock = new Clock(at, () => say(play, "replay"));

/** Show both lanes as they were `ms` after their own starts. */
function at(ms) {
  scrub.value = ms;
  scrub.setAttribute("aria-valuetext", `${number(ms, 1)} ms`);
  for (const lane of lanes) lane.show(lane.middle.record, ms);
}

async function race(signal) {
  clock.stop();
  fail($("race-failure"), null);
  play.disabled = scrub.disabled = true;
  lanes.forEach((lane) => lane.clear());
  try {
    await rounds(signal);
    finish();
  } catch (failure) {
    $("verdict").replaceChildren();
    if (failure.name !== "AbortError") fail($("race-failure"), failure);
  }
}

const state = (...phrase) => $("verdict").replaceChildren(el("span", { t: phrase }));

async function rounds(signal) {
  const messages = [{ role: "user", content: $("race-text").value }];
  const request = { model: await modelName(), messages, max_tokens: 160, temperature: 0 };
  if ($("race-tools").checked) Object.assign(request, offering(messages));
  state("warmUp");
  await generate({ ...request, max_tokens: 1 }, "ar", {}, signal);
  const all = Number($("race-rounds").value);
  for (let round = 1; round <= all; round++) {
    const order = round % 2 ? lanes : [...lanes].reverse(); // neither is always the first
    for (const lane of order) {
      state("round", { round, all, lane: t(lane.key) });
      await run(lane, request, signal);
    }
  }
}

/** One lane alone on the processor. */
async function run(lane, request, signal) {
  const record = new Recording();
  const draw = paced(() => lane.show(record, record.duration), GAP);
  const frame = (canvas) => {
    record.add(canvas);
    draw();
  };
  const made = await generate(request, lane.policy(), { frame }, signal).finally(draw.stop);
  const outcome = made.text + JSON.stringify(made.calls.map((call) => call.function));
  lane.rounds.push({ record, outcome, made: { ...figures(made), prefill: made.took?.prefill_ms ?? 0 } });
  lane.show(record, record.duration);
  lane.sum();
}

function finish() {
  const [slow, fast] = lanes.map((lane) => lane.middle.made.ms);
  const [key, ratio] = slow >= fast ? ["fasterBy", slow / fast] : ["slowerBy", fast / slow];
  const same = ar.middle.outcome === diffusion.middle.outcome;
  const told = [el("strong", { t: [key, { ratio: number(ratio, 1) }] }), " ", el("span", { t: same ? "sameText" : "otherText2" })];
  $("verdict").replaceChildren(...told);
  scrub.max = Math.max(...lanes.map((lane) => lane.middle.record.duration));
  at(Number(scrub.max));
  play.disabled = scrub.disabled = false;
  announce($("verdict").textContent);
}

scrub.addEventListener("input", () => {
  clock.stop();
  at(Number(scrub.value));
});
play.addEventListener("click", () => {
  if (clock.runs) return clock.stop();
  const end = Number(scrub.max);
  const from = Number(scrub.value) < end ? Number(scrub.value) : 0;
  say(play, "pause");
  clock.play(from, end, () => Number($("race-speed").value));
});
worker($("race-form"), race);

const text = $("race-text");
let example = (text.value = t("racePrompt"));
document.addEventListener("language", () => {
  if (text.value === example) text.value = t("racePrompt");
  example = t("racePrompt");
});
