"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mezzotint.errors import MezzotintError
from mezzotint.store import resolve


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct as GGUF: $MEZZOTINT_SMOLLM2, or pulled into the store before.

    Tests that ask for it are skipped where it is not there.
    """
    try:
        return resolve(os.environ.get("MEZZOTINT_SMOLLM2") or "smollm2-135m")
    except MezzotintError:
        pytest.skip("run `mezzotint pull smollm2-135m` first")
