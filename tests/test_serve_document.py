"""docs/api.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from mezzotint.serve.document import document

FILE = Path(__file__).parent.parent / "docs/api.md"


def test_the_document_is_up_to_date() -> None:
    hint = "run `python -m mezzotint.serve.document > docs/api.md`"
    assert FILE.read_text("utf-8") == document(), hint


def test_every_link_leads_to_a_heading() -> None:
    text = FILE.read_text("utf-8")
    headings = {line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("###")}
    assert set(re.findall(r"\(#(\w+)\)", text)) <= headings
