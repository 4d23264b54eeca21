"""A finished audit, read back from its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from foci.audits.curves import CurveTable
from foci.audits.layout import CURVES, FORMAT, MANIFEST, RANKINGS, SLIDES, SUMMARY
from foci.audits.slides import AuditedSlide, read_slides
from foci.audits.tiles import RankedTiles, read_tiles
from foci.errors import FociError


@dataclass(frozen=True)
class Audit:
    """What one run found. Everything is read from the folder when it is asked for.

    Attributes:
        folder: The audit folder.
    """

    folder: Path

    @classmethod
    def load(cls, folder: str | Path) -> Audit:
        """Open a complete audit folder."""
        audit = cls(Path(folder))
        state = audit.manifest.get("status")
        if state != "complete":
            raise FociError(
                folder, "holds an unfinished audit", "give the foci audit command again"
            )
        return audit

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Configuration, versions, hashes, seeds, verdict."""
        path = self.folder / MANIFEST
        if not path.is_file():
            raise FociError(
                self.folder, f"has no {MANIFEST}", "give the folder of foci audit --out"
            )
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise FociError(path, f"is not JSON ({error})", "audit again with --force") from None
        if found.get("format", FORMAT) > FORMAT:
            raise FociError(path, f"is of format {found['format']}", "update foci")
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All numbers; None where a number is not defined."""
        summary: dict[str, Any] = json.loads((self.folder / SUMMARY).read_text(encoding="utf-8"))
        return summary

    @cached_property
    def curves(self) -> CurveTable:
        """The stored reveal and deletion curves."""
        return CurveTable.read(self.folder / CURVES)

    @cached_property
    def slides(self) -> tuple[AuditedSlide, ...]:
        """The slides that were audited, in the order of the curves."""
        return tuple(s for s in self._all_slides if s.skipped is None)

    @cached_property
    def skipped(self) -> tuple[AuditedSlide, ...]:
        """The slides that were left out, each with its reason."""
        return tuple(s for s in self._all_slides if s.skipped is not None)

    def tiles(self) -> Iterator[RankedTiles]:
        """Every slide's tiles with their scores, one slide at a time."""
        return read_tiles(self.folder / RANKINGS)

    @property
    def verdict(self) -> dict[str, Any] | None:
        """Verdict, sentence and evidence; None if native, selector and random were not all run."""
        verdict: dict[str, Any] | None = self.summary["verdict"]
        return verdict

    @cached_property
    def _all_slides(self) -> tuple[AuditedSlide, ...]:
        return read_slides(self.folder / SLIDES)
