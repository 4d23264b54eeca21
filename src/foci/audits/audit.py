"""A finished audit, read back from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from foci.audits.folder.curves import CurveTable
from foci.audits.folder.damage import AGAIN, lost_file, read_object, readable
from foci.audits.folder.names import CURVES, FORMAT, MANIFEST, RANKINGS, SLIDES, SUMMARY
from foci.audits.folder.slides import AuditedSlide, read_slides
from foci.audits.folder.tile_scores import RankedTiles, read_tiles
from foci.errors import FociError

_NEEDED = ("name", "settings", "backbone", "classes")
"""What every reader of a manifest counts on."""


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
        manifest = audit.manifest
        if manifest.get("status") != "complete":
            raise FociError(
                folder, "holds an unfinished audit", "give the foci audit command again"
            )
        absent = [key for key in _NEEDED if key not in manifest]
        if absent:
            raise FociError(audit.folder / MANIFEST, f"says nothing of {absent[0]!r}", AGAIN)
        lost = lost_file(audit.folder, manifest)
        if lost is not None:
            raise FociError(audit.folder / lost, "is missing", AGAIN)
        return audit

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Configuration, versions, hashes, seeds, verdict."""
        path = self.folder / MANIFEST
        if not path.is_file():
            raise FociError(
                self.folder, f"has no {MANIFEST}", "give the folder of foci audit --out"
            )
        found = read_object(path)
        number = found.get("format")
        if not isinstance(number, int):
            raise FociError(path, "is not the manifest of an audit", AGAIN)
        if number > FORMAT:
            raise FociError(path, f"is of format {number}", "update foci")
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All numbers; None where a number is not defined."""
        path = self.folder / SUMMARY
        summary = read_object(path)
        if "views" not in summary:
            raise FociError(path, "holds no numbers", AGAIN)
        return summary

    @cached_property
    def curves(self) -> CurveTable:
        """The stored reveal and deletion curves."""
        path = self.folder / CURVES
        with readable(path):
            return CurveTable.read(path)

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
        path = self.folder / RANKINGS
        with readable(path):
            yield from read_tiles(path)

    @property
    def verdict(self) -> dict[str, Any] | None:
        """Verdict, sentence and evidence; None if native, selector and random were not all run."""
        verdict: dict[str, Any] | None = self.summary["verdict"]
        return verdict

    @cached_property
    def _all_slides(self) -> tuple[AuditedSlide, ...]:
        path = self.folder / SLIDES
        with readable(path):
            return read_slides(path)
