"""Arms on our own engine: any model it runs, by any policy, held to schemas or free."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mezzotint.backend import Pass, Session, extend
from mezzotint.bench.arms.arm import Answer, Asked, Clock
from mezzotint.bench.arms.spec import MOST_CALLS, OursSpec
from mezzotint.bench.tasks import Edit, Message, Task
from mezzotint.canvas import WRITTEN, FloatArray, IntArray
from mezzotint.constraint import Grammar, vocabulary
from mezzotint.constraint import tools as grammar_of
from mezzotint.conversation import chat_ids
from mezzotint.family import Regime
from mezzotint.generate import Options, Run, infill, stream
from mezzotint.model import Model
from mezzotint.pieces import Change
from mezzotint.revise import revise

_CAUSAL = (Regime.CAUSAL, Regime.CAUSAL_WINDOW, Regime.CAUSAL_MASKS)  # others see what follows


class Ours:
    """model: shared by the arms that use it; each has a cache of its own."""

    def __init__(self, spec: OursSpec, model: Model) -> None:
        self._model, self._spec = model, spec
        self._session: Session = model.session()
        self._grammar: Grammar | None = None
        self._options = Options(temperature=0.0, policy=spec.policy, block=spec.block)

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        return tuple(chat_ids(self._model.tokenizer, list(messages)))

    def ready(self, asked: Asked) -> None:
        self._session.truncate(0)
        extend(self._session, asked.waking)
        self._session.truncate(asked.held if self._model.family.regime in _CAUSAL else 0)
        tools = asked.task.tools if self._spec.structure else ()
        self._grammar = grammar_of(tools, most=MOST_CALLS) if tools else None
        if self._grammar and asked.held:
            vocabulary(self._model.tokenizer, self._model.family).matcher(self._grammar.lark)

    def run(self, asked: Asked) -> Answer:
        task = asked.task
        if task.parts and self._spec.infill:
            return self._fill(task)
        if task.edit and self._spec.infill:
            return self._revise(task.edit)
        session, clock, first = _Timed(self._session), Clock(), None
        options = replace(self._options, max_tokens=task.max_tokens)
        with clock:
            run = stream(self._model, asked.ids, options, session, self._grammar)
            steps = iter(run)
        while True:
            with clock:
                step = next(steps, None)
            if step is None:
                break
            if first is None and task.done(self._said(run, len(asked.ids))):
                first = clock.wall
        with clock:
            result = run.result()
        if first is None and task.done(result.text):
            first = clock.wall
        return Answer(
            result.text, first, clock.wall, result.prefill_seconds,
            sum(session.calls[bool(run.rode) - result.passes :]), clock.cpu,
            result.passes, result.written, result.forced, result.stop,
        )  # fmt: skip

    def close(self) -> None:
        self._session.truncate(0)

    def _said(self, run: Run, start: int) -> str:
        tokens = run.canvas.tokens[start : run.canvas.settled].tolist()
        stops = self._model.family.stop_ids
        end = next((i for i, token in enumerate(tokens) if token in stops), len(tokens))
        return self._model.tokenizer.decode(tokens[:end])

    def _fill(self, task: Task) -> Answer:
        """The hole of a text, seen from both sides; passes and times of all lengths tried."""
        assert task.parts is not None
        clock = Clock()
        with clock:
            encode = self._model.tokenizer.encode
            parts = [None if part is None else encode(part) for part in task.parts]
            result = infill(self._model, [part for part in parts if part != []], self._options)
        canvas, filler = result.canvas, self._model.family.delete_id
        written = canvas.tokens[(canvas.state == WRITTEN) & (canvas.tokens != filler)]
        return Answer(
            self._model.tokenizer.decode(written.tolist()), None, clock.wall,
            result.prefill_seconds, result.decode_seconds, clock.cpu,
            result.passes, result.written, 0, "stop",
        )  # fmt: skip

    def _revise(self, edit: Edit) -> Answer:
        """A text of which one part was changed; what is read again counts as model time."""
        clock, change = Clock(), Change(edit.start, edit.end, edit.new)
        with clock:
            found = revise(self._model, edit.text, [change])
        return Answer(
            found.text, None, clock.wall, 0.0, found.seconds, clock.cpu,
            found.passes, found.tokens - found.reused, 0, "stop",
        )  # fmt: skip


class _Timed:
    """A session that notes the seconds of each pass."""

    def __init__(self, session: Session) -> None:
        self._session, self.calls = session, list[float]()

    @property
    def length(self) -> int:
        return self._session.length

    @property
    def vocab(self) -> int:
        return self._session.vocab

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        began = time.perf_counter()
        logits = self._session.score(rows, np.asarray(want, np.int32))
        self.calls.append(time.perf_counter() - began)
        return logits

    def keep(self, count: int) -> None:
        self._session.keep(count)

    def truncate(self, length: int) -> None:
        self._session.truncate(length)

    def fork(self) -> _Timed:
        return _Timed(self._session.fork())
