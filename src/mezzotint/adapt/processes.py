"""The processes of a run: one, or as many as `accelerate launch` started.

Distribution itself is accelerate's: it wraps model and optimiser so that gradients are averaged
and, with FSDP2, so that each process holds its shard of what is learnt, of its gradients and of
the optimiser's state. Files hold whole tensors in either case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_map

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

    def share(self, model: nn.Module, optimizer: Optimizer) -> tuple[Callable[..., Any], Optimizer]:
        """Both as accelerate wraps them. An optimiser's state is to be loaded after that."""
        if not self._accelerator:
            return model, optimizer
        return self._accelerator.prepare(model, optimizer)  # type: ignore[no-any-return]

    def load(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        """Give `optimizer` a `state_dict` of whole tensors."""
        params = [p for group in optimizer.param_groups for p in group["params"]]
        each = {
            number: {name: _like(params[number], value) for name, value in known.items()}
            for number, known in state["state"].items()
        }
        optimizer.load_state_dict(state | {"state": each})

    @contextmanager
    def whole(self, model: nn.Module) -> Iterator[None]:
        """With the parameters of `model` put together. Every process must enter."""
        sharded: Any = model if hasattr(model, "unshard") else None
        if sharded:
            sharded.unshard()
        try:
            yield
        finally:
            if sharded:
                sharded.reshard()

    @staticmethod
    def gather(tree: T) -> T:
        """`tree`, its shards put together. Every process must ask."""
        return tree_map(lambda x: x.full_tensor() if hasattr(x, "full_tensor") else x, tree)  # type: ignore[no-any-return]

    def wait(self) -> None:
        """Until every process is here: what the first has written is there for all."""
        if self._accelerator:
            self._accelerator.wait_for_everyone()

    def mine(self, items: Sequence[T]) -> Sequence[T]:
        return items[self.rank :: self.count]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """(n,) summed over the processes."""
        if not self._accelerator:
            return values
        total = torch.from_numpy(values).to(self.device, torch.float32)
        return self._accelerator.reduce(total, "sum").cpu().numpy().astype(np.float64)  # type: ignore[no-any-return]


def _like(param: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """`value`, in shards where it belongs to a parameter that is."""
    if value.shape != param.shape or not hasattr(param, "full_tensor"):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, param.device_mesh, param.placements)  # type: ignore[attr-defined]
