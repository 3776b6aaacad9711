"""GGUF files of merged weights for llama.cpp, made once and kept in the store's folder.

The weights are exported as bfloat16; other types are made of that by llama.cpp's own
quantiser, as its users do. Names hold the digest of what the weights come from.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from mezzotint.bench.llama import quantised
from mezzotint.checkpoint import Checkpoint
from mezzotint.checkpoint.gguf_write import write_gguf
from mezzotint.progress import bar
from mezzotint.store import home


def exported(checkpoint: Checkpoint, kind: str, quiet: bool = False) -> Path:
    """The checkpoint's weights as a GGUF of type `kind`: q4_0, q8_0 or bf16."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{checkpoint.name}-{digest(checkpoint)[:16]}"
    source = folder / f"{stem}-bf16.gguf"
    if not source.exists():
        with bar(f"exporting {checkpoint.name}", quiet, of_bytes=False) as report:
            write_gguf(checkpoint, source, "bf16", report)
    return source if kind == "bf16" else quantised(source, kind, folder / f"{stem}-{kind}.gguf")


def digest(checkpoint: Checkpoint) -> str:
    """sha256 over the sha256 of each file that the weights come from, in hex."""
    whole = hashlib.sha256()
    for file in checkpoint.files:
        whole.update(bytes.fromhex(sha256(file)))
    return whole.hexdigest()


@cache
def sha256(file: Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
