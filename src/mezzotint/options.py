"""What a caller may ask of decoding, and the plan and policy that answer it for a family.

Every combination that a family cannot follow is refused here, before any work.
"""

from __future__ import annotations

from dataclasses import dataclass

from mezzotint.errors import UsageError
from mezzotint.family import Family, Regime
from mezzotint.plan import Blocks, Frontier, Full, Plan, Reordered
from mezzotint.policy import Policy, Resize, Unmask, parse
from mezzotint.policy.unmask import LeftToRight
from mezzotint.sampling import Filtered


@dataclass(frozen=True, slots=True)
class Options:
    """How to decode; None means what the family publishes.

    policy: a spelling of `mezzotint.policy.parse`. steps: denoising steps per block.
    block: block or window length (0: the whole canvas, for full attention).
    cache: none, prefix or dual, with ":k" to refresh every k passes; full attention only.
    lengths: what is tried for a hole of unknown length. grow: to how many positions a hole
        may expand, for a family that resizes holes itself.
    """

    max_tokens: int = 128
    policy: str | None = None
    steps: int | None = None
    block: int | None = None
    cache: str = "none"
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    lengths: tuple[int, ...] = (4, 8, 16, 32)
    grow: int = 64


def policy_for(
    family: Family, options: Options, infill: bool = False, constrained: bool = False
) -> Policy:
    """The policy that `options` ask for, or the family's where it can do what is wanted.

    constrained: the text keeps to a grammar, so no policy may take written text back.
    """
    sampler = Filtered(
        family.temperature if options.temperature is None else options.temperature,
        family.top_p if options.top_p is None else options.top_p,
        family.top_k if options.top_k is None else options.top_k,
    )
    steps = family.steps if options.steps is None else options.steps
    if steps < 0:
        raise UsageError(f"steps is {steps}; it must be 0 (one token a step) or more")
    policy = parse(options.policy or family.policy, sampler, steps)
    if infill and policy.drafts == "causal":
        if options.policy not in (None, "fast"):
            hint = "use a policy such as threshold:0.9"
            raise UsageError("verify scores a hole without the text after it", hint)
        policy = parse("threshold:0.9", sampler)
    if constrained and policy.drafts in ("shown", "shadow"):
        if options.policy:
            hint = "use a policy such as threshold:0.9"
            raise UsageError(f"{options.policy} takes text back, which no grammar can follow", hint)
        policy = parse("threshold:0.9", sampler)
    if family.expand_id is not None and not constrained:
        return Resize(policy, family.expand_id, family.delete_id, options.grow)
    return policy


def plan_for(family: Family, policy: Policy, cache: str = "none", block: int | None = None) -> Plan:
    """The plan of the family's regime. Raises UsageError for a combination that has none."""
    regime, size = family.regime, family.block if block is None else block
    two_way = regime is Regime.CAUSAL_WINDOW
    if cache != "none" and regime is not Regime.FULL:
        raise UsageError(f"{family.name} has an exact cache; cache {cache!r} is for full attention")
    least = 0 if regime in (Regime.FULL, Regime.CAUSAL) else 1
    if size < least:
        raise UsageError(f"{family.name} needs a block length of {least} or more, got {size}")
    if policy.drafts == "shadow" and family.shift:
        raise UsageError(f"{family.name} is shifted: no row predicts a draft without seeing it")
    if policy.drafts in ("shown", "shadow") and regime not in (Regime.FULL, Regime.BLOCK_CAUSAL):
        raise UsageError(f"{family.name} has no blocks in which text could be revised")
    causal = regime in (Regime.CAUSAL, Regime.CAUSAL_WINDOW, Regime.CAUSAL_MASKS)
    if policy.drafts == "causal" and not (causal and family.shift):
        raise UsageError(f"{family.name} cannot verify: it has no causal, shifted rows")
    if regime is Regime.FULL:
        return _full_plan(family, cache, size)
    if regime is Regime.BLOCK_CAUSAL:
        return Blocks(size, family.shift, family.sub_block if family.sub_block < size else 0)
    if regime is Regime.REORDERED:
        return Reordered(size)
    masks = {Regime.CAUSAL: 0, Regime.CAUSAL_WINDOW: size, Regime.CAUSAL_MASKS: size - 1}[regime]
    if isinstance(policy, Unmask) and isinstance(policy.rule, LeftToRight):
        masks = 0  # AR needs no window: a fair comparison computes none
    return Frontier(family.shift, masks, two_way, policy.drafts == "causal")


def lays_skeletons(family: Family, policy: Policy, cache: str) -> bool:
    """Whether holes between fixed text can be filled together: a row sees what comes after it,
    drafts are not verified, and no cached row is after a hole, for holes shrink."""
    causal = family.regime in (Regime.CAUSAL, Regime.CAUSAL_MASKS)
    return not causal and policy.drafts == "none" and cache == "none"


def _full_plan(family: Family, cache: str, size: int) -> Full:
    kind, _, every = cache.partition(":")
    if kind not in ("none", "prefix", "dual") or (every and not every.isdecimal()):
        hint = "it is none, prefix, dual, prefix:k or dual:k (refresh every k passes)"
        raise UsageError(f"no cache {cache!r}", hint)
    if kind != "none" and family.expand_id is not None:
        raise UsageError(f"{family.name} moves text as holes grow, so it cannot cache: {cache!r}")
    return Full(family.shift, size, kind, int(every or 0))
