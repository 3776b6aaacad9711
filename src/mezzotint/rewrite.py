"""Rewrite a text as an instruction says: asked in chat, with the old text as its own draft.

What the model does not change costs few passes, what must stay is there letter for letter, and
the answer is compared with the old text word by word. How good it is, is up to the model: this
needs one that follows such instructions. It knows the loop and chat; drafts are `redraft`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

import numpy as np

from mezzotint.conversation import chat_ids
from mezzotint.decode import decode
from mezzotint.errors import TooLarge, UsageError
from mezzotint.generate import Model
from mezzotint.options import plan_for
from mezzotint.pieces import Piece, pieces, result, words
from mezzotint.policy import Verify
from mezzotint.redraft import Redraft
from mezzotint.revise import Revision

SYSTEM = "Rewrite the text of the user as asked. Answer with the whole new text and nothing else."
WHY = "instruction"


def rewrite(
    model: Model,
    text: str,
    instruction: str,
    keep: Sequence[tuple[int, int]] = (),
    between: Callable[[], None] = lambda: None,
) -> Revision:
    """The text as `instruction` wants it; words that touch `keep` (characters) stay, in order,
    and so does the space around the text.

    between: called between passes; what it raises ends this.
    Raises UsageError for an empty instruction, positions outside the text, or a family that
    cannot verify; TooLarge beyond the context.
    """
    if not instruction.strip():
        raise UsageError("the instruction is empty", "say what to change, or give edits")
    began = time.perf_counter()
    everything = pieces(text, (), keep)
    inner = [i for i, piece in enumerate(everything) if piece.old.strip()] or [0, -1]
    start, stop = inner[0], inner[-1] + 1
    found = everything[start:stop]
    prompt = chat_ids(model.tokenizer, asked(text.strip(), instruction))
    parts = [model.tokenizer.encode(piece.old) for piece in found]
    kept = [piece.fixed for piece, part in zip(found, parts, strict=True) for _ in part]
    old = [token for part in parts for token in part]
    draft = Redraft(model.family, old, np.array(kept, np.bool_), len(prompt))
    passes, rows, written = _run(model, draft, prompt, between)
    new = _compared(model, found, draft, written)
    said, spans = result([*everything[:start], *new, *everything[stop:]])
    return Revision(said, spans, len(written), 0, passes, rows, time.perf_counter() - began)


def asked(text: str, instruction: str) -> list[dict[str, str]]:
    """The messages whose answer is the new text."""
    asks = {"role": "user", "content": f"{text}\n\n{instruction}"}
    return [{"role": "system", "content": SYSTEM}, asks]


def _run(
    model: Model, draft: Redraft, prompt: Sequence[int], between: Callable[[], None]
) -> tuple[int, int, list[int]]:
    """Passes, rows, and the tokens written, without the one that stops."""
    family = model.family
    plan = plan_for(family, Verify())
    canvas = draft.canvas(prompt, -1 if family.mask_id is None else family.mask_id)
    if len(canvas) > model.context:
        what = f"text and answer need {len(canvas)} positions, the context is {model.context}"
        raise TooLarge(what, "rewrite a part of the text")
    session, passes, rows = model.session(), 0, 0
    plan.prefill(session, canvas)
    for step in decode(session, canvas, plan, draft, constraint=draft, stop_ids=family.stop_ids):
        canvas, passes, rows = step.canvas, passes + 1, rows + step.rows
        between()
    written = canvas.tokens[len(prompt) : canvas.settled].tolist()
    if written and written[-1] in family.stop_ids:
        written.pop()
    return passes, rows, written


def _compared(
    model: Model, found: Sequence[Piece], draft: Redraft, written: Sequence[int]
) -> Iterator[Piece]:
    """Old and new side by side: what stays, and between it the differences word by word."""
    encode, decode_ = model.tokenizer.encode, model.tokenizer.decode
    where = {place: i for i, place in enumerate(draft.origin) if place >= 0 and draft.kept[place]}
    old = new = 0
    for fixed, some in groupby(found, key=lambda piece: piece.fixed):
        before = [piece.old for piece in some]
        old += sum(len(encode(word)) for word in before)
        if fixed:
            new = where[old - 1] + 1
            yield from (Piece(word, word, True) for word in before)
        else:
            stop = where.get(old, len(written))
            yield from _differences(before, words(decode_(written[new:stop])))
            new = stop
    if not found or found[-1].fixed:
        yield from _differences([], words(decode_(written[new:])))


def _differences(old: list[str], new: list[str]) -> Iterator[Piece]:
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Piece(word, word) for word in old[a:b])
        else:
            yield Piece("".join(old[a:b]), "".join(new[c:d]), False, WHY)
