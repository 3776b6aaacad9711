"""Generate and infill: a first canvas, a plan and a policy, and the loop run to its end.

It works on any Model (the native engine, the reference, the toy): a family, a tokenizer and
sessions. It knows nothing of chat, files or terminals.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mezzotint.backend import Session
from mezzotint.canvas import GIVEN, WRITTEN, Canvas, Edit, FloatArray, IntArray
from mezzotint.constraint import Grammar, Holes, vocabulary
from mezzotint.decode import Constraint, Step, cut_at_stop, decode
from mezzotint.errors import TooLarge, UsageError
from mezzotint.family import Family, Regime
from mezzotint.options import Options, lays_skeletons, plan_for, policy_for
from mezzotint.plan import Plan
from mezzotint.policy import Policy

__all__ = [
    "Grammar", "Model", "Options", "Result", "Run", "Step", "Tokenizer", "generate", "infill",
    "stream",
]  # fmt: skip


class Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...


class Model(Protocol):
    """What generation needs of a loaded checkpoint. context: the most positions it takes."""

    @property
    def family(self) -> Family: ...
    @property
    def context(self) -> int: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def session(self) -> Session: ...


@dataclass(frozen=True, slots=True)
class Result:
    """What a run made.

    tokens, text: for `generate` what follows the prompt, without the stop token; for
        `infill` the whole. written: positions decided. passes: forward passes that decide;
        where the first of them reads the prompt, too, its time is the prefill's. rows: of
        these passes, without the prompt's.
        stop: "stop" (a stop token), "length", "filled" or "interrupted".
    forced: of `written`, those that a grammar left no choice for: they cost no pass.
    """

    text: str
    tokens: tuple[int, ...]
    canvas: Canvas
    written: int
    passes: int
    rows: int
    prefill_seconds: float
    decode_seconds: float
    stop: str
    forced: int = 0

    @property
    def tokens_per_pass(self) -> float:
        return self.written / self.passes if self.passes else 0.0


class Run:
    """A decoding in progress: iterate for its steps; `result()` finishes it.

    `canvas` is always the newest; `start` is where generated text begins, None for infilling;
    `rode`: rows of the prompt that the first pass reads, too.
    Between steps it may be left, and its session used again.
    """

    def __init__(
        self,
        model: Model,
        canvas: Canvas,
        options: Options,
        session: Session,
        start: int | None,
        grammar: Grammar | None = None,
    ) -> None:
        """start: where generated text begins, or None for infilling."""
        if len(canvas) > model.context:
            what = f"prompt and text need {len(canvas)} positions, the context is {model.context}"
            raise TooLarge(what, "shorten the prompt or ask for fewer tokens")
        room = model.context - int((canvas.state == GIVEN).sum())
        options = replace(options, grow=min(options.grow, room))
        policy = policy_for(model.family, options, start is None, grammar is not None)
        plan = plan_for(model.family, policy, options.cache, options.block)
        self._holes: Holes | None = None
        if grammar is not None and start is not None:
            words = vocabulary(model.tokenizer, model.family)
            skeletons = lays_skeletons(model.family, policy, options.cache)
            self._holes = Holes(words, grammar, start, options.max_tokens, skeletons)
        self.model, self.canvas, self.options, self.session = model, canvas, options, session
        self.passes = self.rows = 0
        self.prefill_seconds = self.decode_seconds = 0.0
        self.rode = 0
        self.start, self._steps = start, self._run(plan, policy)

    def __iter__(self) -> Iterator[Step]:
        return self._steps

    def _run(self, plan: Plan, policy: Policy) -> Generator[Step]:
        family = self.model.family
        began = time.perf_counter()
        if self._holes:
            self.canvas = cut_at_stop(self._holes.begin(self.canvas), family.stop_ids)
        self.rode = plan.prefill(self.session, self.canvas)
        self.prefill_seconds = time.perf_counter() - began
        steps = decode(
            self.session,
            self.canvas,
            plan,
            policy,
            constraint=self._holes or self._ends(policy),
            stop_ids=family.stop_ids,
            rng=np.random.default_rng(self.options.seed),
        )
        for step in steps:
            self.canvas = step.canvas
            self.passes += 1
            read = self.rode if self.passes == 1 else 0
            self.rows += step.rows - read
            if read:
                self.prefill_seconds += step.seconds
            else:
                self.decode_seconds += step.seconds
            yield step

    def _ends(self, policy: Policy) -> Constraint | None:
        """What keeps the text from ending too early, if anything must."""
        family = self.model.family
        if self.start is None:
            return _NoStopInside(family)
        if family.regime is Regime.CAUSAL_WINDOW:
            return _EndsLast(family, holds=policy.drafts == "none")
        return None

    def stop(self) -> None:
        """End here: `result()` then gives what has come."""
        self._steps.close()

    def result(self) -> Result:
        """Run to the end, and what came of it; after an interruption, what had come so far.

        Raises MezzotintError if the text is not of its grammar, with what is wrong.
        """
        for _ in self._steps:
            pass
        tokens, stop = self._ending()
        text = self.model.tokenizer.decode(tokens)
        if self._holes and stop != "interrupted":
            self._holes.finish(text)
        return Result(
            text=text,
            tokens=tuple(tokens),
            canvas=self.canvas,
            written=int((self.canvas.state == WRITTEN).sum()),
            passes=self.passes,
            rows=self.rows,
            prefill_seconds=self.prefill_seconds,
            decode_seconds=self.decode_seconds,
            stop=stop,
            forced=self._holes.forced if self._holes else 0,
        )

    def _ending(self) -> tuple[list[int], str]:
        tokens = self.canvas.tokens[: self.canvas.settled].tolist()
        if self.start is None:
            return self._closed(tokens), "interrupted" if self.canvas.open else "filled"
        tokens = tokens[self.start :][: self.options.max_tokens]  # it was rounded up to a block
        stops = [i for i, token in enumerate(tokens) if token in self.model.family.stop_ids]
        if stops:
            return tokens[: stops[0]], "stop"
        return tokens, "interrupted" if self.canvas.open else "length"

    def _closed(self, tokens: list[int]) -> list[int]:
        """Without the fillers that stand where a hole was longer than its text."""
        filler = self.model.family.delete_id
        written = self.canvas.state[: len(tokens)] == WRITTEN
        return [t for t, ours in zip(tokens, written, strict=True) if not (ours and t == filler)]


def stream(
    model: Model,
    prompt: Sequence[int],
    options: Options | None = None,
    session: Session | None = None,
    grammar: Grammar | None = None,
) -> Run:
    """A run that writes after `prompt` (token ids). `session` may hold its first rows already.

    Raises UsageError for options the family cannot follow, or a grammar none of whose texts
    is known to fit; TooLarge beyond the context.
    """
    options, family = options or Options(), model.family
    if options.max_tokens < 1:
        raise UsageError(f"max_tokens is {options.max_tokens}; it must be 1 or more")
    length = len(prompt) + options.max_tokens
    if family.regime is Regime.BLOCK_CAUSAL:
        size = options.block or family.block or 1
        length = min(-(-length // size) * size, max(model.context, length))
    canvas = Canvas.of([list(prompt), length - len(prompt)], _mask(family))
    return Run(model, canvas, options, session or model.session(), len(prompt), grammar)


def generate(
    model: Model,
    prompt: Sequence[int],
    options: Options | None = None,
    session: Session | None = None,
    grammar: Grammar | None = None,
) -> Result:
    """`stream`, run to its end."""
    return stream(model, prompt, options, session, grammar).result()


def infill(
    model: Model, parts: Sequence[Sequence[int] | int | None], options: Options | None = None
) -> Result:
    """Fill the holes between given parts: token ids are text, n is n positions, None unknown.

    An unknown hole grows by itself where the family can (DreamOn); otherwise every length
    of `options.lengths` is tried, the same for all such holes, and the filling with the
    highest mean log confidence wins. Passes and times are then those of all trials. A
    block-causal model sees given text only to the end of the hole's block.
    """
    options, family = options or Options(), model.family
    if family.regime in (Regime.CAUSAL, Regime.CAUSAL_MASKS):
        hint = "take a diffusion model with attention in both directions, or use generate"
        what = f"{family.name} cannot infill: a hole does not see the text after it"
        raise UsageError(what, hint)
    known = None not in parts
    lengths = options.lengths[:1] if known or family.expand_id is not None else options.lengths
    if not lengths or min(lengths) < 1:
        raise UsageError(f"lengths is {options.lengths}; it needs lengths of 1 or more")
    results = []
    for n in lengths:
        canvas = Canvas.of([n if part is None else part for part in parts], _mask(family))
        results.append(Run(model, canvas, options, model.session(), None).result())
    return replace(
        max(results, key=lambda r: _mean_log_confidence(r.canvas)),
        passes=sum(r.passes for r in results),
        rows=sum(r.rows for r in results),
        prefill_seconds=sum(r.prefill_seconds for r in results),
        decode_seconds=sum(r.decode_seconds for r in results),
    )


def _mask(family: Family) -> int:
    return -1 if family.mask_id is None else family.mask_id


def _mean_log_confidence(canvas: Canvas) -> float:
    written = canvas.confidence[canvas.state == WRITTEN].astype(np.float64)
    return float(np.log(np.maximum(written, 1e-30)).mean()) if len(written) else -np.inf


@dataclass(frozen=True, slots=True)
class _NoStopInside:
    """A stop token is not written where given text follows, except as the order to delete."""

    family: Family

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        given = np.flatnonzero(canvas.state == GIVEN)
        inside = targets < (given[-1] if len(given) else 0)
        stops = [t for t in self.family.stop_ids if t != self.family.delete_id]
        logits[np.ix_(inside, np.array(stops, np.int64))] = -np.inf
        return logits

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        return edit


@dataclass(frozen=True, slots=True)
class _EndsLast:
    """A hybrid's text ends where all before it is decided, and fillers are not text.

    A window reaches past the end of the text, and there it is sure of the end and of fillers
    before it is sure of what comes before them. holds: a row that would end the text says
    nothing (every token alike) while a position before it is open; not needed where drafts
    are verified.
    """

    family: Family
    holds: bool

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        filler = self.family.delete_id
        if self.holds:
            endings = {*self.family.stop_ids, filler}
            ending = [i for i, row in enumerate(logits) if i and int(row.argmax()) in endings]
            logits[ending] = 0.0
        banned = [t for t in (filler, self.family.mask_id) if t is not None]
        logits[:, banned] = -np.inf
        return logits

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        return edit
