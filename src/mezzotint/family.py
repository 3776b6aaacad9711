"""A family is what a checkpoint kind needs to be decoded rightly, as data.

The loop has no family branches: it asks the regime which positions see which, the
shift which row predicts which position, and the ids which token means what. Facts
and their sources: docs/families.md. Finding the family of a checkpoint is
`mezzotint.checkpoint.detect`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Regime(StrEnum):
    """Who sees whom.

    CAUSAL         a token sees itself and earlier ones; masks are never shown (plain AR).
    FULL           every position sees every other (LLaDA, Dream).
    BLOCK_CAUSAL   blocks of `block` aligned to position 0: a position sees its block and
                   earlier ones (SDAR, Fast-dLLM v2, LLaDA2).
    CAUSAL_WINDOW  settled tokens are causal; the window of masks after them sees all of
                   them and all of itself (our hybrid; Set Block Decoding).
    CAUSAL_MASKS   masks too are causal; drafts are verified in the same pass (I-DLM).
    REORDERED      in the pass, decided tokens come first and masks after, at their true
                   positions, all causal in that order (WeDLM).
    """

    CAUSAL = "causal"
    FULL = "full"
    BLOCK_CAUSAL = "block-causal"
    CAUSAL_WINDOW = "causal-window"
    CAUSAL_MASKS = "causal-masks"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class Family:
    """One checkpoint kind.

    shift: logits of row i predict position i + 1 (as in AR training) instead of i.
        In BLOCK_CAUSAL with shift, a block's first token comes from the finished block
        before it (Fast-dLLM v2).
    block: block length (BLOCK_CAUSAL) or window length; 0 where there is none.
    sub_block: smaller blocks decoded in order inside a block; 0 = the block is one.
    mask_id: None for a plain AR model.
    policy: the default decoding rule, in the spelling of `mezzotint.policy.parse`.
    steps: the published number of denoising steps per block for scheduled rules; 0 = one
        token a step.
    expand_id: a predicted token that splits a hole into two; `delete_id`: one that
        removes it (DreamOn).
    """

    name: str
    regime: Regime
    shift: bool
    mask_id: int | None
    stop_ids: tuple[int, ...]
    policy: str
    block: int = 0
    sub_block: int = 0
    steps: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    expand_id: int | None = None
    delete_id: int | None = None

    @property
    def diffusion(self) -> bool:
        """False for a plain AR model, which can only write from left to right."""
        return self.regime is not Regime.CAUSAL
