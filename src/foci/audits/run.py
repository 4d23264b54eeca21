"""One audit, from a frozen classifier and a cohort to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from foci.atomic import write_whole
from foci.audits.analysis.csv_tables import write_tables
from foci.audits.analysis.summary import summarise, to_json
from foci.audits.audit import Audit
from foci.audits.compute.blocks import n_blocks, reveal_blocks
from foci.audits.compute.jobs import units_of
from foci.audits.compute.merge import assemble, features_digest
from foci.audits.compute.partial import Parts
from foci.audits.compute.slide import SlideReveal
from foci.audits.folder import manifest as record
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.names import CURVES, PARTS, RANKINGS, SUMMARY, TABLES
from foci.audits.folder.run_key import decided_by
from foci.audits.folder.slides import AuditedSlide
from foci.audits.folder.state import entered, state_of
from foci.audits.folder.tile_scores import read_tiles
from foci.audits.settings import AuditSettings
from foci.audits.setup.preflight import admit, check_steady
from foci.audits.setup.selectors import described, fit_selectors, on_fitting
from foci.audits.setup.splits import already_seen, divide
from foci.backbones import Backbone, fingerprint
from foci.backbones.freezing import eval_mode
from foci.bags import Cohort
from foci.errors import FociError
from foci.progress import Progress


def run(
    backbone: Backbone,
    cohort: Cohort,
    settings: AuditSettings,
    out: str | Path,
    *,
    name: str = "model",
    split_seed: int = 0,
    sources: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    model_notes: Sequence[str] = (),
    trained_on: Collection[str] = (),
    force: bool = False,
    progress: Progress = lambda items, what: items,
    say: Callable[[str], None] = lambda line: None,
) -> Audit:
    """Audit a frozen classifier; what an earlier run of the same audit has finished is kept.

    Selectors are fitted on the splits ``train`` and ``val``; every slide of the audited split is
    then ranked, revealed and deleted. A slide that cannot be audited is skipped and listed. A run
    that was killed goes on where it stopped and ends with the same bytes.

    Args:
        backbone: The classifier; its device is where the audit runs. It is the same afterwards.
        cohort: Its slides; classes in the classifier's order. Labels are optional.
        settings: Rankings, counts, seeds, recipe.
        out: The audit folder.
        name: What people call the model.
        split_seed: Of the patient split, if the cohort has no splits.
        sources: Where model and cohort came from, for the manifest.
        notes: Plain sentences for the report.
        model_notes: What was assumed when the model was loaded.
        trained_on: Slides that the model was trained on, where that is known.
        force: Remove another audit that is in the folder.
        progress: Wraps every loop that takes a while.
        say: Called with lines for people.

    Raises:
        FociError: If model, cohort and settings do not fit each other, the folder holds something
            else or another run is under way in it, no slide can be audited, the classifier gives
            two answers to one bag, or it has changed meanwhile.
    """
    folder = Path(out)
    cohort, settings, changed = admit(backbone, cohort, settings)
    decided = decided_by(backbone, cohort, settings, split_seed)
    versions = record.versions_of(backbone)
    if state_of(folder, decided, versions, force=force) == "finished":
        return _finished(folder, say)
    check_steady(backbone, cohort)
    with entered(folder, decided, versions, force=force) as state:
        if state == "finished":  # by another run, while this one waited for the model's answers
            return _finished(folder, say)
        if state == "new":
            facts = record.opening(
                backbone, settings, decided,
                name=name, classes=cohort.classes, sources=sources or {}, model_notes=model_notes,
            )  # fmt: skip
            record.write(folder, facts)
        else:
            facts = record.read(folder)
            say(f"{folder}: going on with what is there")

        weights = facts["backbone"]["fingerprint"]
        division = divide(cohort, settings, split_seed, progress)
        for slide in division.skipped[len(cohort.skipped) :]:
            say(f"skipped {slide.slide_id}: {slide.skipped}")
        changed = (*changed, *already_seen(division.audited, trained_on))
        for note in (*division.notes[len(cohort.notes) :], *changed):
            say(f"note: {note}")
        parts = Parts(folder)
        with eval_mode(backbone):
            selectors = (
                {}
                if division.fitting is None
                else fit_selectors(
                    backbone, division.fitting, settings, folder, progress=progress, say=say
                )
            )
            for note in on_fitting(selectors):
                say(f"note: {note}")
            units = units_of(settings, selectors)
            slides = division.audited.slides
            reveal = SlideReveal(backbone, settings)
            reveal_blocks(slides, cohort.store, reveal, units, parts, progress=progress, say=say)
        if fingerprint(backbone) != weights:
            shutil.rmtree(parts.folder)
            what = "changed while it was audited"
            raise FociError(
                f"backbone {backbone.architecture}", what, "leave it alone and try again"
            )

        blocks, wanted = n_blocks(slides, settings.block), [slide.slide_id for slide in slides]
        everyone = assemble(folder, parts, blocks, units, wanted, division.skipped)
        audited = [slide for slide in everyone if slide.skipped is None]
        summary = _conclude(folder, settings, cohort.classes, everyone)
        facts |= {
            "slides": {
                "train": division.count("train"),
                "val": division.count("val"),
                "audited": len(audited),
                "skipped": len(everyone) - len(audited),
            },
            "features_sha256": features_digest(audited),
            "selectors": [described(fitted, folder) for fitted in selectors.values()],
            "notes": [*notes, *model_notes, *division.notes, *changed, *on_fitting(selectors)],
            "verdict": summary["verdict"],
            "files": record.file_hashes(folder),
            "finished": record.now(),
            "status": "complete",
        }
        record.write(folder, facts)
        shutil.rmtree(parts.folder, ignore_errors=True)
    return Audit.load(folder)


def _finished(folder: Path, say: Callable[[str], None]) -> Audit:
    """An audit that an earlier run has completed."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    say(f"{folder}: this audit is complete, nothing is computed again")
    return Audit.load(folder)


def _conclude(
    folder: Path, settings: AuditSettings, classes: Sequence[str], slides: Sequence[AuditedSlide]
) -> dict[str, Any]:
    """Write the summary and the tables."""
    curves, tiles = CurveTable.read(folder / CURVES), read_tiles(folder / RANKINGS)
    audited = [slide for slide in slides if slide.skipped is None]
    skipped = [slide for slide in slides if slide.skipped is not None]
    summary = summarise(curves, audited, classes, settings, tiles, len(skipped))
    write_whole(folder / SUMMARY, to_json(summary))
    write_tables(folder / TABLES, summary, curves, audited, skipped, settings)
    return summary
