"""A conversation: messages in, one run of the loop per answer, KV kept between turns.

Knows chat templates only through the tokenizer, and nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mezzotint.backend import Session, shared
from mezzotint.constraint import Grammar
from mezzotint.family import Regime
from mezzotint.generate import Model, Options, Result, Run, Step, Tokenizer, stream
from mezzotint.text import Tokenizer as ChatTokenizer


@dataclass(slots=True)
class Conversation:
    """Turn by turn: `ask`, finish the run it gives, `answered`.

    `messages` are role and content, oldest first; put a system message in before asking.
    watch: told of each step that `write` makes; what it raises ends the writing.
    """

    model: Model
    options: Options
    messages: list[dict[str, str]] = field(default_factory=list)
    watch: Callable[[Run, Step], None] | None = None
    _session: Session | None = None
    _cached: list[int] = field(default_factory=list)

    def ask(self, text: str) -> Run:
        """A run that writes the answer to `text`. Raises as `stream` does."""
        asked = [*self.messages, {"role": "user", "content": text}]
        run = self._run(asked)
        self.messages = asked
        return run

    def write(self, messages: Sequence[dict[str, str]], grammar: Grammar | None = None) -> Result:
        """The turn after `messages`, whatever they are; `self.messages` stays as it is."""
        run = self._run(list(messages), grammar)
        if self.watch:
            for step in run:
                self.watch(run, step)
        result = run.result()
        self._cached = result.canvas.tokens.tolist()
        return result

    def _run(self, messages: list[dict[str, str]], grammar: Grammar | None = None) -> Run:
        prompt = chat_ids(self.model.tokenizer, messages)
        self._session = self._session or self.model.session()
        self._session.truncate(self._reusable(prompt))
        run = stream(self.model, prompt, self.options, self._session, grammar)
        self._cached = []
        return run

    def begin(self, tokens: list[int]) -> None:
        """Hold the rows of a beginning that comes again, from disk if they are there."""
        from mezzotint.backend.native import NativeModel
        from mezzotint.prefixes import begin

        engine = getattr(self.model, "engine", None)
        if isinstance(engine, NativeModel) and self._reusable([*tokens, -1]) < len(tokens):
            self._session, self._cached = begin(engine, tokens), list(tokens)

    def answered(self, result: Result) -> None:
        """Remember the answer, and which tokens the cache holds rows of."""
        self.messages.append({"role": "assistant", "content": result.text})
        self._cached = result.canvas.tokens.tolist()

    def _reusable(self, prompt: list[int]) -> int:
        """Cached rows that the new prompt shares; whole blocks where a row sees its block."""
        family = self.model.family
        if self._session is None or family.regime is Regime.FULL:
            return 0  # a row saw text that is no longer there
        count = shared(self._cached[: self._session.length], prompt[:-1])
        if family.regime is Regime.BLOCK_CAUSAL:
            count -= count % (self.options.block or family.block)
        return count


def chat_ids(tokenizer: Tokenizer, messages: list[dict[str, str]]) -> list[int]:
    """Token ids of the conversation, ready for an answer.

    The toy's tokenizer has no template: it is given the bare lines.
    """
    if isinstance(tokenizer, ChatTokenizer):
        return tokenizer.chat(messages)
    return tokenizer.encode("".join(m["content"] + "\n" for m in messages))


def raw_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of text to be continued as it is."""
    return (
        tokenizer.prompt(text) if isinstance(tokenizer, ChatTokenizer) else tokenizer.encode(text)
    )
