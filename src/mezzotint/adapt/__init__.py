"""Adaptation: an AR checkpoint becomes a hybrid that also decodes by denoising."""
