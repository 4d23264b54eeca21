"""Open a finished audit folder: manifest, summary, curves, tile scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from foci.audits.folder import (
    AGAIN,
    CHANGED,
    CURVES,
    FORMAT,
    MANIFEST,
    MEASURED,
    RANKINGS,
    SLIDES,
    SUMMARY,
    AuditedSlide,
    CurveTable,
    RankedTiles,
    as_model,
    lost_file,
    parts_of,
    read_object,
    read_slides,
    read_tiles,
    readable,
    stored_columns,
)
from foci.audits.manifest import Manifest
from foci.audits.measure import MeasuredSlides, Shard, join_shards, measure_slides
from foci.audits.numbers import summarise
from foci.audits.records import Alarm, Answers, Summary
from foci.audits.settings import RELATIVE, AuditSettings, Kappa, View
from foci.errors import FociError
from foci.files.hashes import changed_files, check_format, was_changed
from foci.outputs import check_kappa, logit


@dataclass(frozen=True)
class StoredAudit:
    """Results of a finished audit, each file read on first access.

    :class:`foci.Audit` adds a report and a notebook display.

    Attributes:
        cache: What was measured, by threshold, budget and whether answers are relative.
        changed: Files that are not as the audit wrote them; pages name them.
    """

    folder: Path
    cache: dict[tuple[float, int, bool], MeasuredSlides] = field(
        default_factory=dict, repr=False, compare=False
    )
    changed: tuple[str, ...] = field(default=(), kw_only=True)

    @classmethod
    def load(cls, folder: str | Path, *, accept_changed: bool = False) -> Self:
        """Open the folder of a finished audit; every file must have the hash in its manifest.

        This finds accidents, not forgers. What has no hash there is not checked. With
        ``accept_changed`` it is opened anyway, and :attr:`changed` names the files.
        """
        audit = cls(Path(folder))
        if audit._stored_manifest.get("status") != "complete":
            raise FociError(
                folder, "holds an unfinished audit", "give the foci audit command again"
            )
        files = audit.manifest.files
        if not accept_changed and (lost := lost_file(audit.folder, files)) is not None:
            raise FociError(audit.folder / lost, "is missing", AGAIN)
        changed: tuple[str, ...] = (MANIFEST,) if was_changed(audit._stored_manifest) else ()
        changed += changed_files(audit.folder, files)
        for table in (CURVES, RANKINGS, MEASURED):
            known = {name for name in files if name.startswith(f"{table}/")}
            parts = {f"{table}/{path.name}" for path in parts_of(audit.folder, table)}
            changed += tuple(f"{name} (added)" for name in sorted(parts - known) if known)
        if changed and not accept_changed:
            what = f"was changed since the audit wrote it: {', '.join(changed)}"
            raise FociError(folder, what, CHANGED)
        return replace(audit, changed=changed)

    @property
    def changed_note(self) -> str | None:
        """A sentence that names the changed files; None where nothing was changed."""
        if not self.changed:
            return None
        return (
            f"Changed since the audit wrote it: {', '.join(self.changed)}. These numbers may not "
            "be those of the run."
        )

    @cached_property
    def manifest(self) -> Manifest:
        """The record of the run: settings, versions, hashes, answers."""
        return as_model(self.folder / MANIFEST, Manifest, self._stored_manifest)

    @cached_property
    def _stored_manifest(self) -> dict[str, Any]:
        """Content of ``manifest.json``; another format is refused."""
        path = self.folder / MANIFEST
        if not path.is_file():
            raise FociError(
                self.folder, f"has no {MANIFEST}", "give the folder of foci audit --out"
            )
        return _of_this_format(path)

    @cached_property
    def summary(self) -> Summary:
        """All numbers of the audit; None where a number is not defined."""
        path = self.folder / SUMMARY
        return as_model(path, Summary, _of_this_format(path))

    @cached_property
    def curves(self) -> CurveTable:
        """The stored reveal and deletion curves."""
        with readable(self.folder / CURVES):
            table = CurveTable.read(self.folder)
        named, found = len(self.manifest.classes), table.n_classes
        if named != found:
            what = f"names {named} classes where the curves have {found}"
            raise FociError(self.folder / MANIFEST, what, AGAIN)
        return table

    @cached_property
    def slides(self) -> tuple[AuditedSlide, ...]:
        """The slides that were audited, in the order of the curves."""
        return tuple(s for s in self._all_slides if s.skipped is None)

    @cached_property
    def skipped(self) -> tuple[AuditedSlide, ...]:
        """The slides that were skipped, each with its reason."""
        return tuple(s for s in self._all_slides if s.skipped is not None)

    def tiles(self, slide_ids: Collection[str] | None = None) -> Iterator[RankedTiles]:
        """Iterate over the slides, or those named, each with its tiles and their scores."""
        missing = set(self.curves.slide_ids if slide_ids is None else slide_ids)
        scored = stored_columns(self.curves).keys()
        for path in parts_of(self.folder, RANKINGS):
            with readable(path):
                for tiles in read_tiles(path, slide_ids):
                    if tiles.slide_id not in missing:
                        what = f"holds {tiles.slide_id!r} twice, or it is no slide of this audit"
                        raise FociError(path, what, AGAIN)
                    if lost := scored - tiles.scores.keys():
                        raise FociError(path, f"has no scores of {min(lost)}", AGAIN)
                    missing.discard(tiles.slide_id)
                    yield tiles
            if slide_ids is not None and not missing:
                return
        if missing:
            raise FociError(self.folder / RANKINGS, f"has no tiles of {min(missing)}", AGAIN)

    def measured(self, settings: AuditSettings | None = None) -> MeasuredSlides:
        """Metrics of every slide, at the run's threshold and budget or at those of ``settings``.

        The first are stored, others are computed from the curves, shard by shard, once.
        """
        stored = self.manifest.settings
        settings = stored if settings is None else settings
        key = settings.kappa, settings.k_max, settings.relative
        if key not in self.cache:
            same = (settings.kappa, settings.k_max) == (stored.kappa, stored.k_max)
            if same and (self.folder / MEASURED).is_dir():
                found = self.joined(settings)
                views = self.summary.views.items()
                means = {v: {n: own.mean_curve for n, own in by.items()} for v, by in views}
                found = replace(found, mean_curves=means)
            else:
                found = measure_slides(self.curves, self.slides, self.manifest.classes, settings)
            self.cache[key] = found
        return self.cache[key]

    def joined(self, settings: AuditSettings) -> MeasuredSlides:
        """What the run has measured, without mean curves."""
        shards = [Shard.read(path) for path in parts_of(self.folder, MEASURED)]
        n_slides = sum(len(shard.arrays["full"]) for shard in shards)
        if n_slides != len(self.slides):
            what = f"holds {n_slides} slides where {SLIDES} lists {len(self.slides)}"
            raise FociError(self.folder / MEASURED, what, AGAIN)
        with readable(self.folder / MEASURED):
            return join_shards(shards, self.slides, self.manifest.classes, settings, self.curves)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """Reasons why the numbers may not mean what they seem to mean; read them first."""
        return tuple(self.manifest.alarms)

    @property
    def answers(self) -> Answers:
        """Can I believe the map, how many tiles, is there a better order? With the evidence."""
        return self.summary.answers

    @cached_property
    def _all_slides(self) -> tuple[AuditedSlide, ...]:
        path = self.folder / SLIDES
        with readable(path):
            return read_slides(path)


def _of_this_format(path: Path) -> dict[str, Any]:
    content = read_object(path)
    check_format(path, content, FORMAT, AGAIN)
    return content


# Recompute a summary from stored curves at another threshold, budget or view; no model runs.


def changed_settings(
    audit: StoredAudit,
    *,
    kappa: Kappa | None = None,
    k_max: int | None = None,
    view: View | None = None,
) -> AuditSettings:
    """Replace kappa, k_max or view in the settings; refuse what stored curves cannot answer.

    The kappa ``"relative"`` keeps the stored one and adds the answers relative to each slide's own
    confidence.
    """
    stored = audit.manifest.settings
    changed: dict[str, Any] = {"kappa": kappa, "k_max": k_max, "target": view}
    if kappa == RELATIVE:
        changed |= {"kappa": None, "relative": True}
    changed = {name: value for name, value in changed.items() if value is not None}
    if k_max is not None and k_max > stored.k_max:
        what = f"is {k_max}, but curves were stored up to {stored.k_max} tiles"
        raise FociError("--k-max", what, f"give at most {stored.k_max}, or audit again")
    if k_max is not None and k_max < 1:
        raise FociError("--k-max", f"is {k_max}", "give 1 or more")
    if not isinstance(kappa, str | None) and not 0 < kappa < 1:
        raise FociError("--kappa", f"is {kappa}", "give a confidence between 0 and 1")
    if view == "label" and "label" not in audit.summary.views:
        raise FociError("--view label", "no audited slide has a label", "use --view prediction")
    if stored.tau is not None and "kappa" in changed:
        # the distance that this confidence stands for
        check_kappa(changed["kappa"])
        changed["tau"] = stored.tau * logit(changed["kappa"]) / logit(stored.kappa)
    return stored.model_copy(update=changed)


def recompute(
    audit: StoredAudit,
    *,
    kappa: Kappa | None = None,
    k_max: int | None = None,
    view: View | None = None,
) -> Summary:
    """Recompute the summary at other settings; return the stored one if nothing differs.

    The audit folder is not changed.
    """
    settings = changed_settings(audit, kappa=kappa, k_max=k_max, view=view)
    stored = audit.summary
    asked = settings.relative and not (stored.answers and stored.answers.relative)
    if asked or (settings.kappa, settings.k_max) != (stored.kappa, stored.k_max):
        return summarise(
            audit.measured(settings),
            audit.curves,
            audit.manifest.classes,
            settings,
            stored.agreement,
            n_skipped=len(audit.skipped),
        )
    return stored if view is None else stored.model_copy(update={"first_view": view})
