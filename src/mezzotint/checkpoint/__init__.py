"""Reading checkpoints: their files, their shape, their family, their tokenizer."""
