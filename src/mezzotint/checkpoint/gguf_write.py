"""A checkpoint as one GGUF file that llama.cpp loads: its weights, merged, and its vocabulary.

The base's own metadata is kept (tokenizer, chat template, sizes); only what tells of the
number format is written anew. It knows GGUF's layout; blocks are quantised by the `gguf`
package, as its own converter does. The file says nothing of diffusion: whoever reads it
decodes the weights autoregressively.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mezzotint.atomic import replacing
from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.gguf import INTERLEAVED, ROPE_FREQS, tensor_names
from mezzotint.errors import UsageError
from mezzotint.progress import Report

if TYPE_CHECKING:
    from mezzotint.checkpoint.open import Checkpoint

TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
_COARSE = "q4_", "q5_"  # embedding and head stay q8_0: llama.cpp's quantiser spares them, too
_OWN = ("general.file_type", "general.name", "general.quantization_version")


def write_gguf(
    checkpoint: Checkpoint, out: Path, kind: str, report: Report = lambda done, total: None
) -> None:
    """Write `checkpoint` to the new file `out`, matrices of type `kind`, vectors in float32.

    Raises UsageError for a type not in TYPES, a base that is no GGUF, or a file that exists.
    """
    import gguf

    if kind not in TYPES:
        raise UsageError(f"no type {kind!r}", f"choose one of {', '.join(TYPES)}")
    if checkpoint.path.suffix != ".gguf":
        hint = "llama.cpp's own converter reads a Hugging Face folder (`mezzotint adapt merge`)"
        raise UsageError(f"{checkpoint.path.name} is no GGUF file, so its vocabulary is none", hint)
    if out.exists():
        raise UsageError(f"{out} exists", "name a new file")
    reader = gguf.GGUFReader(checkpoint.path)
    arch = str(reader.fields["general.architecture"].contents())
    with replacing(out) as partial, closing(gguf.GGUFWriter(partial, arch)) as writer:
        _copy_metadata(reader, writer)
        writer.add_name(checkpoint.name)
        writer.add_file_type(gguf.LlamaFileType[_file_type(kind)])
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        _add_tensors(checkpoint, writer, arch, kind, report)
        for tensor in reader.tensors:
            if tensor.name == ROPE_FREQS:  # divisors of angles, no weights: kept as they are
                writer.add_tensor(tensor.name, np.array(tensor.data))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()


def interleave_rows(array: FloatArray, heads: int) -> FloatArray:
    """The converter's permutation, which `gguf.rotate_half_rows` undoes: (…, 2, d/2) halves
    become (…, d/2, 2) pairs."""
    halves = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(array.shape))


def _copy_metadata(reader: Any, writer: Any) -> None:
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in _OWN:
            continue
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type=inner)


def _file_type(kind: str) -> str:
    if kind == "f32":
        return "ALL_F32"
    return f"MOSTLY_{kind.upper()}"


def _add_tensors(checkpoint: Checkpoint, writer: Any, arch: str, kind: str, report: Report) -> None:
    import gguf

    names = tensor_names(checkpoint.shape.layers)
    wanted = list(checkpoint.weights)
    for done, name in enumerate(wanted):
        report(done, len(wanted))
        array = checkpoint.weights[name]
        role = name.rpartition(".")[2]
        if arch in INTERLEAVED and role in ("q", "k", "q_bias", "k_bias"):
            shape = checkpoint.shape
            array = interleave_rows(array, shape.heads if role[0] == "q" else shape.kv_heads)
        spared = role in ("embed", "head") and kind.startswith(_COARSE)
        form = gguf.GGMLQuantizationType[("q8_0" if spared else kind).upper()]
        if array.ndim == 1 or form == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(names[name], array)
        else:
            writer.add_tensor(names[name], gguf.quantize(array, form), raw_dtype=form)
