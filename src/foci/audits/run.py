"""Run an audit: prepare, fit selectors, reveal every slide, measure, conclude.

A killed run resumes where it stopped and ends with the same bytes: selectors that are fitted are
loaded (:mod:`foci.audits.selectors`), blocks of slides that are written are kept
(:mod:`foci.audits.parts`), and the manifest decides whether a folder holds this very audit
(:mod:`foci.audits.manifest`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foci.audits.alarms import find_alarms, not_compared
from foci.audits.audit import StoredAudit
from foci.audits.folder import MANIFEST, SUMMARY, TABLES, read_object
from foci.audits.jobs import ranking_jobs
from foci.audits.manifest import (
    Manifest,
    SlideCounts,
    State,
    file_hashes,
    now,
    read_manifest,
    state_of,
    write_manifest,
)
from foci.audits.null_maps import draw_null_maps
from foci.audits.numbers import summarise
from foci.audits.outputs import with_sides
from foci.audits.parts import features_digest, locked_run_folder, remove_parts, tidy
from foci.audits.patients import DECIDING_SLIDES, deciding_slides, in_one_sentence
from foci.audits.prepare import (
    Prepared,
    SplitSlides,
    check_time,
    many_left_out,
    new_manifest,
    prepare,
    split_slides,
)
from foci.audits.records import PairAgreement
from foci.audits.reveal import default_workers, n_blocks, reveal, threads_of
from foci.audits.selectors import described, fit, in_words, on_fitting
from foci.audits.settings import EVIDENCE, AuditSettings
from foci.audits.sources import Sources, announce, cut_slides
from foci.audits.tables import as_csv, write_tables
from foci.backbones.freezing import device_and_dtype, eval_mode
from foci.bags.cohort import line_of
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.hashes import was_changed
from foci.files.lock import alone_in
from foci.files.run_log import RunLog
from foci.processes import frozen_gc, preload
from foci.rankings.evidence import ONE_BY_ONE, in_groups
from foci.reveal import Revealer
from foci.selectors import FittedSelector
from foci.words import counted

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunOptions:
    """How an audit is run.

    Attributes:
        force: Replace another audit in the folder.
        workers: Processes that reveal blocks of slides side by side; None for one per core, where
            every one has at least two blocks. Their number changes no byte.
        selectors: Folders of fitted selectors, one per seed, instead of fitting them here.
        yes: Run also if it takes more than eight hours and nobody watches.
    """

    force: bool = False
    workers: int | None = 1
    selectors: Sequence[Path] = ()
    yes: bool = False


def run(
    sources: Sources,
    settings: AuditSettings,
    out: str | Path,
    options: RunOptions = RunOptions(),  # noqa: B008  # frozen
) -> StoredAudit:
    """Audit a frozen classifier, or resume an earlier run of the same audit.

    Selectors are fitted on the splits ``train`` and ``val``; then the tiles of every slide in the
    audited split are ranked, revealed and deleted. A slide that cannot be audited is skipped and
    listed.

    Raises:
        FociError: If model, cohort and settings do not fit together, the folder holds something
            else or another run is using it, no slide can be audited, the classifier is not
            deterministic, or its weights, answers or files or the features change during the audit.
    """
    folder = Path(out)
    with RunLog(folder, f"audit of {sources.name}", held=True) as log:
        announce(sources.cohort, sources.model_notes, sources.alarms)
        sources, settings = with_sides(sources, settings)
        prepared = prepare(sources, settings, options.selectors)
        inputs, versions = prepared.inputs, prepared.versions
        if state_of(folder, inputs, versions, force=options.force) == "finished":
            return _finished(folder)
        drift = prepared.check_model()
        if drift is not None:
            prepared = replace(prepared, notes=(*prepared.notes, *drift.notes))
        with (
            frozen_gc(),
            locked_run_folder(folder, inputs, versions, force=options.force) as state,
            eval_mode(sources.backbone),
        ):
            if state == "finished":  # by another run, while this one checked the model
                return _finished(folder)
            manifest = _manifest(folder, state, prepared)
            log.begin()  # with a manifest the folder is known to hold an audit
            slides = _divide(prepared)
            blocks = n_blocks(slides.audited.slides, prepared.settings.block)
            device = device_and_dtype(sources.backbone)[0]
            workers = options.workers or default_workers(blocks, device)
            check_time(prepared.backbone, slides.audited, workers=workers, yes=options.yes)
            if workers > 1:
                preload()
            fitted, manifest = fit(
                prepared.backbone, slides.fitting, prepared.settings, prepared.pretrained,
                folder, manifest,
            )  # fmt: skip
            if manifest.threads is None:  # a resumed run keeps those of its first part
                manifest = manifest.model_copy(update={"threads": threads_of(workers)})
                write_manifest(folder, manifest)
            readout = {"readout": manifest.settings.readout}
            prepared = replace(prepared, settings=prepared.settings.model_copy(update=readout))
            null_maps = draw_null_maps(
                prepared.settings, Revealer(prepared.backbone, recheck=()),
                slides.audited.slides, prepared.cohort.store,
            )  # fmt: skip
            jobs = ranking_jobs(prepared.settings, fitted, null_maps)
            agreement = reveal(
                prepared, slides, jobs, folder,
                drift=drift, workers=workers, threads=manifest.threads,
            )  # fmt: skip
            return _conclude(prepared, slides, fitted, folder, manifest, agreement)


def _finished(folder: Path) -> StoredAudit:
    """Open an audit that an earlier run has completed."""
    with contextlib.suppress(OSError, FociError), alone_in(folder):  # killed at its very end
        remove_parts(folder)
        tidy(folder)
    _LOG.info("%s: this audit is complete, nothing is computed again", folder)
    return StoredAudit.load(folder)


def _manifest(folder: Path, state: State, prepared: Prepared) -> Manifest:
    """Write the manifest of a new run, or read that of the run that is resumed."""
    if state != "new":
        if was_changed(read_object(folder / MANIFEST)):
            fix = "give --force, or another --out"
            raise FociError(folder / MANIFEST, "was changed since the audit wrote it", fix)
        _LOG.info("%s: resuming with what is there", folder)
        return read_manifest(folder)
    manifest = new_manifest(prepared)
    write_manifest(folder, manifest)
    return manifest


def _divide(prepared: Prepared) -> SplitSlides:
    """Slides to fit on and slides to audit, with a message on everything that is left out."""
    cohort, own = prepared.cohort, prepared.pretrained is None
    slides = split_slides(cohort, prepared.settings, prepared.sources.split_seed, fits=own)
    for slide in slides.skipped[len(cohort.skipped) :]:
        _LOG.info("skipped %s: %s", slide.slide_id, slide.skipped)
    for note in (*slides.notes[len(cohort.notes) :], *prepared.notes):
        _LOG.info(line_of(note))
    return slides


def _conclude(
    prepared: Prepared,
    slides: SplitSlides,
    fitted: Mapping[int, FittedSelector],
    folder: Path,
    manifest: Manifest,
    agreement: Sequence[PairAgreement],
) -> StoredAudit:
    """Measure every slide once, write summary, tables and alarms, and complete the manifest."""
    sources, cohort, settings = prepared.sources, prepared.cohort, prepared.settings
    audit = StoredAudit(folder)
    measured = audit.measured(settings)
    summary = summarise(
        measured, audit.curves, cohort.classes, settings, agreement, len(audit.skipped)
    )
    write_whole(folder / SUMMARY, summary.to_json())
    write_tables(folder / TABLES, summary, measured, audit.slides, audit.skipped)
    of_patients = deciding_slides(audit, settings)
    if of_patients:
        write_whole(folder / TABLES / DECIDING_SLIDES, as_csv(of_patients))
    learned = {slide.slide_id for slide in slides.fitting or ()}
    encoders = {name: e for name, e in cohort.store.encoders.items() if name in learned}
    found = find_alarms(
        audit.slides, measured.slides, cohort.classes,
        record=sources.record, trained_on=sources.trained_on, fitted=encoders,
        overlapping=manifest.overlapping_patients,
        patients={slide.case_id for slide in cohort},
    )  # fmt: skip
    cut = cut_slides(audit.slides, cohort.store.n_cap)
    for sentence in cut:
        _LOG.warning(sentence)
    many = many_left_out(cohort, len(audit.slides), {slide.slide_id for slide in audit.skipped})
    grouped = sum(in_groups(prepared.backbone, slide.n_tiles) for slide in audit.slides)
    groups = f"evidence of {counted(grouped, 'slide')} above {ONE_BY_ONE:,} tiles: groups of tiles "
    groups += "were tried first, single tiles only in the best of them"
    notes = [
        *cut,
        *([many] if many else []),
        *sources.notes,
        *sources.model_notes,
        *([groups] if grouped and EVIDENCE in settings.rankings else []),
        *slides.notes,
        *prepared.notes,
        *not_compared(audit.slides, sources.record),
        *in_one_sentence(of_patients),
        *on_fitting(fitted),
        *in_words(manifest.readout),
    ]
    result = {
        "slides": SlideCounts(
            train=slides.count("train"),
            val=slides.count("val"),
            audited=len(audit.slides),
            skipped=len(audit.skipped),
            cut=sum(slide.n_tiles < slide.n_total for slide in audit.slides),
        ),
        "features_sha256": features_digest(audit.slides),
        "selectors": [described(selector, folder) for selector in fitted.values()],
        "alarms": [*sources.alarms, *found],
        "notes": notes,
        "answers": summary.answers.in_short,
        "files": file_hashes(folder),
        "finished": now(),
        "status": "complete",
    }
    write_manifest(folder, manifest.model_copy(update=result))
    with contextlib.suppress(OSError):
        remove_parts(folder)
    return StoredAudit(folder, audit._measured)
