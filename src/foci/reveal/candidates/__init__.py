"""Logits of a set of tiles with one tile added or removed."""
