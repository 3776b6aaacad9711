"""Types of the C++ core (csrc/bindings.cpp)."""

from enum import Enum

import numpy as np
import numpy.typing as npt

from mezzotint.canvas import BoolArray, FloatArray, IntArray

_Bytes = npt.NDArray[np.uint8]

class Format(Enum):
    F32 = 0
    BF16 = 1
    Q8 = 2
    Q4 = 3

class Pool:
    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int: ...

class Model: ...

class Session:
    def __init__(self, model: Model) -> None: ...
    @property
    def length(self) -> int: ...
    @property
    def last_rows(self) -> int: ...
    def score(
        self,
        tokens: IntArray,
        positions: IntArray,
        kind: int,
        matrix: BoolArray | None,
        hide_first: int,
        hide_last: int,
        want: IntArray,
    ) -> FloatArray: ...
    def keep(self, count: int) -> None: ...
    def truncate(self, length: int) -> None: ...
    def fork(self) -> Session: ...

def build(
    buffer: _Bytes,
    layout: dict[str, int],
    spec: dict[str, object],
    inverse_frequency: FloatArray,
    pool: Pool,
) -> Model: ...
def pack(weight: FloatArray, format: Format, pool: Pool) -> _Bytes: ...
def unpack(data: _Bytes, format: Format, n: int, k: int) -> FloatArray: ...
def product(x: FloatArray, data: _Bytes, format: Format, n: int, kernels: str) -> FloatArray: ...
def kernels() -> list[str]: ...
def peak_rate(pool: Pool, kernels: str) -> float: ...
def read_rate(pool: Pool, data: _Bytes) -> float: ...
