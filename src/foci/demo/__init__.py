"""The embedded cohort: slides whose rationale is known because it was planted."""

from foci.demo.folder import make

__all__ = ["make"]
