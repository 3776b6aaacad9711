"""Reading checkpoints: formats, families, shapes. The door is `open_checkpoint`."""

from mezzotint.checkpoint.open import Checkpoint, open_checkpoint

__all__ = ["Checkpoint", "open_checkpoint"]
