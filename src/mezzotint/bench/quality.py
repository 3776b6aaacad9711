"""What speed costs: the loss of each weight format, and of each approximate cache.

Formats: perplexity and agreement of the likeliest next token with fp32, on a fixed text
of prose, code and tool calls (quality.txt), in stretches of STRETCH tokens.

Caches: of holes scattered over the text, two of three tokens, the share filled as without
a cache. A model that is not trained for full attention is run as if it were, with token 0
as its mask: it fills in nonsense, but its logits depend on stale keys and values as those
of real weights do. (Generating freely, it only repeats itself, and any cache agrees.)
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

from mezzotint.backend import Pass, Session
from mezzotint.canvas import WRITTEN, IntArray
from mezzotint.errors import UsageError
from mezzotint.family import Family, Regime
from mezzotint.generate import Model, Options, infill
from mezzotint.model import Model as Loaded
from mezzotint.model import load

# The others are compared with the first.
FORMATS = ("fp32", "bf16", "int8", "int6/int8", "int6", "int4", "int4/int4")
STRETCH = 512
CAUSAL = (Regime.CAUSAL, Regime.CAUSAL_WINDOW, Regime.CAUSAL_MASKS)
CACHES = ("none", "dual:4", "dual", "prefix:4", "prefix")
PROMPT, TAIL, BLOCK = 64, 96, 16


def measure(
    name: str, threads: int = 0, quick: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Both losses of a model on the native engine, as plain JSON values.

    Raises UsageError for a model without causal rows, of which perplexity is not defined.
    """
    models = {}
    for weights in FORMATS:
        loaded = load(name, "native", weights, threads, quiet=quiet)
        if not isinstance(loaded, Loaded) or loaded.family.regime not in CAUSAL:
            raise UsageError(f"{name} has no causal rows, so no perplexity", "try smollm2-135m")
        models[weights] = loaded
    first = models[FORMATS[0]]
    tokens = np.array(first.tokenizer.encode(text()), np.int32)
    tokens = tokens[: 2 * STRETCH] if quick else tokens
    return {
        "model": first.name,
        "tokens": len(tokens),
        "formats": compare({w: m.session() for w, m in models.items()}, tokens),
        "caches": caches(_as_full(models["int4"]), tokens, stretches=1 if quick else 4),
    }


def text() -> str:
    """The fixed text."""
    return files("mezzotint.bench").joinpath("quality.txt").read_text("utf-8")


def compare(sessions: dict[str, Session], tokens: IntArray) -> dict[str, dict[str, float]]:
    """Per format: perplexity and top-1 agreement with the first format, over `tokens` (N,)."""
    out: dict[str, dict[str, float]] = {}
    reference: IntArray | None = None
    for name, session in sessions.items():
        loss, best = predict(session, tokens)
        reference = best if reference is None else reference
        out[name] = {
            "perplexity": float(np.exp(loss.mean())),
            "agreement": float((best == reference).mean()),
        }
    return out


def predict(session: Session, tokens: IntArray) -> tuple[np.ndarray[Any, Any], IntArray]:
    """Of every token but the first of a stretch: −ln p (n,), and the likeliest token (n,)."""
    losses, best = [], []
    for start in range(0, len(tokens) - 1, STRETCH):
        part = tokens[start : start + STRETCH]
        session.truncate(0)
        rows = np.arange(len(part), dtype=np.int32)
        logits = session.score(Pass(part, rows, "causal"), rows[:-1]).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        said = logits[rows[:-1], part[1:]]
        losses.append(np.log(np.exp(logits).sum(axis=1)) - said)
        best.append(logits.argmax(axis=1).astype(np.int32))
    return np.concatenate(losses), np.concatenate(best)


def caches(model: Model, tokens: IntArray, stretches: int) -> dict[str, Any]:
    """Per cache plan: agreement with none, and rows computed as a share of none's."""
    filled: dict[str, list[IntArray]] = {cache: [] for cache in CACHES}
    rows = dict.fromkeys(CACHES, 0)
    for start in np.linspace(0, len(tokens) - PROMPT - TAIL, stretches, dtype=int):
        ids = [int(t) for t in tokens[start : start + PROMPT + TAIL]]
        parts: list[list[int] | int] = [ids[:PROMPT]]
        for at in range(PROMPT, len(ids), 3):
            parts += [ids[at : at + 1], 2]
        for cache in CACHES:
            result = infill(model, parts, Options(cache=cache, block=BLOCK))
            filled[cache].append(result.canvas.tokens[result.canvas.state == WRITTEN])
            rows[cache] += result.rows
    exact = np.concatenate(filled[CACHES[0]])
    return {
        cache: {
            "agreement": float((np.concatenate(filled[cache]) == exact).mean()),
            "rows": rows[cache] / rows[CACHES[0]],
        }
        for cache in CACHES
    }


def _as_full(model: Loaded) -> Loaded:
    """The model with full attention, never stopping."""
    mask = model.family.mask_id or 0
    family = Family("as if full", Regime.FULL, model.family.shift, mask, (), "threshold:0.9")
    return replace(model, family=family)


def table(report: dict[str, Any]) -> str:
    """The report for a reader."""
    lines = [f"{report['model']}, {report['tokens']} tokens", ""]
    lines.append(f"{'weights':10}{'perplexity':>11}{'top-1 as fp32':>15}")
    for name, loss in report["formats"].items():
        lines.append(f"{name:10}{loss['perplexity']:11.3f}{loss['agreement']:15.1%}")
    lines += ["", f"{'cache':10}{'rows':>11}{'same as none':>15}"]
    for name, loss in report["caches"].items():
        lines.append(f"{name:10}{loss['rows']:11.0%}{loss['agreement']:15.1%}")
    return "\n".join(lines)
