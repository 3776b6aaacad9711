"""The processes of a run: one, or as many as `accelerate launch` started.

Distribution itself is accelerate's: it wraps the model so that gradients are averaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from mezzotint.errors import BackendError

T = TypeVar("T")


class Processes:
    """count, this one's rank and device; `first` is the one that saves and speaks."""

    def __init__(self) -> None:
        self._accelerator: Any = None
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.count, self.rank = 1, 0
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            try:
                from accelerate import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
                    Accelerator,
                )
            except ImportError:
                raise BackendError(
                    "several processes need `accelerate`", "pip install accelerate"
                ) from None
            self._accelerator = Accelerator()
            self.device = str(self._accelerator.device)
            self.count = self._accelerator.num_processes
            self.rank = self._accelerator.process_index

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, model: nn.Module) -> Callable[..., Any]:
        """`model`, its gradients averaged over the processes."""
        return self._accelerator.prepare_model(model) if self._accelerator else model

    def mine(self, items: Sequence[T]) -> Sequence[T]:
        return items[self.rank :: self.count]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """(n,) summed over the processes."""
        if not self._accelerator:
            return values
        total = torch.from_numpy(values).to(self.device, torch.float32)
        return self._accelerator.reduce(total, "sum").cpu().numpy().astype(np.float64)  # type: ignore[no-any-return]
