"""Synthetic cohort with planted rationales: slides whose decisive tiles are known."""

from foci.demo.folder import make

__all__ = ["make"]
