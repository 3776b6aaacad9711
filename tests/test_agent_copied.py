"""Texts that a small model copied badly, and those that it did not."""

import pytest

from mezzotint.agent.copied import mended


@pytest.mark.parametrize(
    ("value", "told", "meant"),
    [
        ("lentries", "the file with lentils in it, rename it", "lentils"),
        ("avid novak", "what did david novak want?", "david novak"),
        ("laa@mail.example", "Her address is carla@mail.example.", "carla@mail.example"),
        ("I'll dial in the train", "tell her I'll dial in from the train",
         "I'll dial in from the train"),
        ("the plumber come on Monday", "note: the plumber comes on Monday.",
         "the plumber comes on Monday"),
        ("周利例会", "把周例会取消", "周例会"),
    ],
)  # fmt: skip
def test_a_bad_copy_is_mended(value: str, told: str, meant: str) -> None:
    assert mended(value, told) == meant


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("Budget", "the budget, please"),  # said, in other letters
        ("On my way", "tell Ben that I'm late"),  # made, not copied
        ("Documents/plan.txt", "move it to Documents"),
        ("会议", "取消开会"),
        ("", "anything"),
        ("Ben", ""),
    ],
)
def test_anything_else_stays(value: str, told: str) -> None:
    assert mended(value, told) == value
