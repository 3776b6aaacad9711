// The plate: cells of a canvas as they stand, masked dark, the rest lit by confidence.
import { el } from "./dom.js";
import { t } from "./lang.js";

/** Draws canvases into a node; only cells that changed are touched. */
export class Plate {
  #node;
  #shown = [];

  constructor(node) {
    this.#node = node;
  }

  /** Show `cells` [{text, state, confidence}]; what differs from before is marked as fresh. */
  show(cells) {
    const shown = this.#shown;
    this.#node.classList.toggle("code", cells[0]?.text.startsWith("{") ?? false); // a call
    while (shown.length > cells.length) shown.pop().node.remove();
    cells.forEach((cell, at) => {
      const old = shown[at];
      if (!old) {
        shown.push(draw(cell, el("span")));
        this.#node.append(shown[at].node);
      } else if (old.text !== cell.text || old.state !== cell.state || old.confidence !== cell.confidence) {
        shown[at] = draw(cell, old.node);
      } else old.node.classList.remove("fresh");
    });
  }

  clear() {
    this.show([]);
  }
}

function draw(cell, node) {
  const masked = cell.state === "masked";
  const was = node.textContent;
  node.className = `cell ${cell.state}`;
  node.textContent = masked ? "" : cell.text;
  node.toggleAttribute("aria-hidden", masked);
  if (masked) node.removeAttribute("title");
  else {
    node.title = cell.confidence.toFixed(2);
    node.style.setProperty("--sure", cell.confidence);
    if (cell.confidence < 0.3) node.classList.add("unsure");
    if (was !== cell.text) node.classList.add("fresh");
  }
  return { ...cell, node };
}

/** What the plate's tones mean. */
export function legend(node) {
  const tone = (state, sure, key) => {
    const sample = el("span", { class: `cell ${state}` }, state === "masked" ? "" : t(key));
    sample.style.setProperty("--sure", sure);
    return sample;
  };
  node.replaceChildren(
    el("span", { class: "plate small" }, tone("masked", 0, "legendMasked")), t("legendMasked"), " ",
    el("span", { class: "plate small" },
      tone("draft", 0.5, "legendDraft"), " ", t("legendWritten"), " ",
      tone("written", 0, "legendLow"), " → ", tone("written", 1, "legendHigh")),
  );
}
