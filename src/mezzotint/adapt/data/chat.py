"""Self-distilled chat: the base's own answers, so that learning to act costs it no talk.

Sampling the base needs no other data and no other licence, and it is the very text that
the adapted model must still write (arXiv 2402.13669 finds the same of fine-tuning).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from mezzotint.adapt.data import values
from mezzotint.adapt.data.template import expand
from mezzotint.generate import Options, generate
from mezzotint.model import Model
from mezzotint.progress import Report


def questions(count: int, seed: int = 0) -> list[str]:
    """That many different questions, the same for the same seed."""
    table, rng = values.read_once("chat.toml"), Random(f"{seed}/chat")
    found: dict[str, None] = {}
    while len(found) < count:
        text = expand(rng.choice(table["ask"]), rng, lambda _: rng.choice(table["topic"]))
        found[text] = None
    return list(found)


def distil(model: Model, count: int, seed: int, report: Report, longest: int = 96) -> Iterator[str]:
    """One JSON line for each of `count` questions: the question and the model's answer.

    longest: tokens of an answer; one that is not finished by then is left out.
    """
    for number, question in enumerate(questions(count, seed)):
        report(number, count)
        messages = [{"role": "user", "content": question}]
        options = Options(max_tokens=longest, temperature=0.7, top_p=0.95, seed=seed + number)
        answer = generate(model, model.tokenizer.chat(messages), options)
        if answer.stop == "stop" and answer.text.strip():
            row = {"kind": "chat", "language": "en", "messages": messages, "target": answer.text}
            yield json.dumps(row, ensure_ascii=False)
