"""Policies by name: "threshold:0.9", "dynamic:0.85,steps=4", "verify:theta=0.5".

A spelling is a name and, after a colon, options `key=value`; the first may omit its key.
Strings become objects here, once; everything below takes objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from mezzotint.errors import UsageError
from mezzotint.policy.revise import P2, Resize, TokenEdit, Wino
from mezzotint.policy.scores import Policy, Scores
from mezzotint.policy.unmask import (
    Dynamic,
    EntropyBound,
    Even,
    Factor,
    Leading,
    LeftToRight,
    Origin,
    Rule,
    Threshold,
    Timed,
    Unmask,
    WeDLM,
)
from mezzotint.policy.verify import Verify
from mezzotint.sampling import GREEDY, Filtered, Gumbel, Sampler

__all__ = ["Policy", "Resize", "Rule", "Scores", "Unmask", "Verify", "parse"]

_RULES: dict[str, Callable[..., Rule]] = {
    "threshold": Threshold,
    "factor": Factor,
    "entropy-bound": EntropyBound,
    "dynamic": Dynamic,
    "llada2": partial(Dynamic, threshold=0.95),
    "low-confidence": partial(Even, rank="confidence"),
    "random": partial(Even, rank="random"),
    "static": partial(Even, rank="confidence"),
    "sequential": partial(Even, rank="position"),
    "origin": Origin,
    "maskgit-plus": partial(Timed, rank="confidence"),
    "topk-margin": partial(Timed, rank="margin"),
    "entropy": partial(Timed, rank="entropy"),
    "left-to-right": LeftToRight,
    "leading": Leading,
    "wedlm": WeDLM,
}
_POLICIES: dict[str, Callable[..., TokenEdit | Wino | P2 | Verify]] = {
    "llada21": TokenEdit,
    "wino": Wino,
    "p2": P2,
    "verify": Verify,
    "refine": partial(Verify, keep=0.3),
}
MODES = {"ar": "left-to-right", "exact": "verify:0.4", "fast": "refine:0.4,keep=0.5"}
"""Short names of the ways to decode a hybrid. The numbers are chosen on validation data:
docs/LOG.md."""
NAMES = (*MODES, *_RULES, *_POLICIES)

_GUMBEL = ("low-confidence", "random")
_DREAM = ("origin", "maskgit-plus", "topk-margin", "entropy")


def parse(text: str, sampler: Filtered | None = None, steps: int | None = None) -> Policy:
    """The policy spelled `text`, drawing by `sampler` (default: greedy).

    steps: denoising steps per block, for rules that have a schedule and name none in `text`.
    Names may be written with - or _. Raises UsageError, with the valid names or options.
    """
    text = MODES.get(text, text)
    name, _, tail = text.partition(":")
    name = name.strip().replace("_", "-")
    build = _RULES.get(name) or _POLICIES.get(name)
    if build is None:
        raise UsageError(f"no policy {name!r}", f"choose one of {', '.join(NAMES)}")
    known = _options(build)
    options = _read(name, tail, known)
    if steps is not None and "steps" in known:
        options.setdefault("steps", steps)
    made, sampler = build(**options), sampler or GREEDY
    if not isinstance(made, TokenEdit | Wino | P2 | Verify):
        return Unmask(_sampler(name, sampler), made)
    return replace(made, sampler=replace(sampler, order="kp"))


def _options(build: Callable[..., object]) -> dict[str, Any]:
    """Option name → default of what `build` takes from a spelling."""
    fixed = {"rank"} if isinstance(build, partial) and "rank" in build.keywords else set()
    parameters = inspect.signature(build).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in {"sampler", *fixed}}


def _read(name: str, tail: str, known: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for i, item in enumerate(filter(None, tail.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals and i == 0 and known:
            key, value = next(iter(known)), key
        if key not in known:
            valid = ", ".join(known) or "no options"
            raise UsageError(f"policy {name} has no option {key!r}", f"it takes {valid}")
        try:
            options[key] = type(known[key])(float(value))
        except ValueError:
            raise UsageError(f"policy {name}: {key} must be a number, not {value!r}") from None
        if options[key] < 0:
            raise UsageError(f"policy {name}: {key} must be 0 or more, not {value}")
    return options


def _sampler(name: str, sampler: Filtered) -> Sampler:
    """The sampler that the rule's authors use, with these settings."""
    if name in _DREAM:
        return replace(sampler, order="pk")
    if name not in _GUMBEL:
        return replace(sampler, order="kp")
    if sampler.top_p < 1.0 or sampler.top_k:
        hint = "use the policy static, which filters, or leave top-p and top-k out"
        raise UsageError(f"{name} draws by Gumbel noise and has no top-p or top-k", hint)
    return Gumbel(sampler.temperature)
