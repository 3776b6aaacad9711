"""What a run is made of: its options, the control tokens it uses, and its data's identity."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mezzotint.adapt.samples import Sample
from mezzotint.errors import UsageError

MODES = ("hybrid", "twin", "frozen")
MASKS = ("<|mask|>", "<|MASK|>", "<|mdm_mask|>", "<reponame>", "<|fim_pad|>", "<|file_sep|>")
FILLERS = ("<|endoftext|>", "<|pad|>")


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a run is made of, besides the base and the data.

    tokens: rows to train on, clean and window rows together, without padding; the
        twin counts the windows it leaves out, so both see the same samples as often.
    rows: of one batch; accumulate: batches of one step. lr warms up over `warmup` of the
        run, holds, and falls in a line to `floor` of it over the last `decay` of the run.
    masked_weight: of the masked loss beside the next-token loss.
    """

    mode: str = "hybrid"
    rank: int = 32
    alpha: float = 32.0
    dora: bool = False
    tokens: int = 3_000_000
    lr: float = 1e-3
    warmup: float = 0.03
    decay: float = 0.3
    floor: float = 0.02
    clip: float = 1.0
    rows: int = 2560
    accumulate: int = 1
    longest: int = 1024
    masked_weight: float = 1.0
    infill: float = 0.1
    window_rows: int = 40
    seed: int = 0
    dtype: str = "bfloat16"
    report_every: int = 20
    eval_every: int = 200
    eval_samples: int = 64
    decode_samples: int = 8
    save_minutes: float = 5.0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"no mode {self.mode!r}; it is one of {', '.join(MODES)}")
        if self.mode == "frozen" and not self.rank:
            raise UsageError("frozen trains an adapter, so its rank is 1 or more, not 0")


def fingerprint(samples: Sequence[Sample]) -> str:
    """SHA-256 of the tokens and what is wanted of them, in order."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(sample.tokens.tobytes() + sample.wanted.tobytes() + b"|")
    return digest.hexdigest()


def mask_and_filler(
    added: Mapping[str, int], stop: int, mask: str | None = None
) -> tuple[int, int]:
    """Ids of two control tokens that no text of ours uses: the mask, and the filler of holes."""
    masks = [mask] if mask else MASKS
    mask_id = next((added[t] for t in masks if t in added), None)
    filler = next((added[t] for t in FILLERS if t in added and added[t] != stop), None)
    if mask_id is None or filler is None:
        raise UsageError(
            f"no unused control token to be the {'mask' if mask_id is None else 'filler'}",
            f"name one with --mask; the tokenizer has {', '.join(list(added)[:20])}",
        )
    return mask_id, filler
