"""Run an audit: fit selectors, reveal every slide, write the audit folder."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from foci.audits.agreement import Agreements, PairAgreement
from foci.audits.alarms import find_alarms, not_compared
from foci.audits.audit import StoredAudit
from foci.audits.blocks import BlockReveal, n_blocks, reveal_blocks
from foci.audits.conclude import summarise
from foci.audits.folder import SUMMARY, TABLES
from foci.audits.jobs import columns_of, ranking_jobs
from foci.audits.manifest import (
    SlideCounts,
    file_hashes,
    new_manifest,
    now,
    read_manifest,
    run_inputs,
    versions_of,
    write_manifest,
)
from foci.audits.parts import Assembly, PartialResults, features_digest
from foci.audits.prepare import (
    admit,
    check_deterministic,
    check_function,
    check_width,
    many_left_out,
    split_slides,
)
from foci.audits.readout import in_words, with_readout
from foci.audits.records import Alarm
from foci.audits.reveal import SlideReveal
from foci.audits.run_folder import locked_run_folder, remove_parts, state_of, tidy
from foci.audits.selectors import PretrainedSelectors, described, fit_selectors, on_fitting
from foci.audits.settings import AuditSettings
from foci.audits.sources import announce
from foci.audits.summary import Summary
from foci.audits.tables import write_tables
from foci.audits.workers import default_workers, threads_of
from foci.backbones import Backbone
from foci.backbones.checkpoints import Agreement
from foci.backbones.freezing import device_and_dtype, eval_mode
from foci.backbones.saved import ModelRecord
from foci.bags import Cohort
from foci.bags.cohort import files_read, line_of, overlapping_patients
from foci.errors import ChangedError, FociError
from foci.files.atomic import write_whole
from foci.files.hashes import Unchanged
from foci.files.lock import alone_in
from foci.files.run_log import RunLog
from foci.processes import frozen_gc, preload

_LOG = logging.getLogger(__name__)


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
    record: ModelRecord | None = None,
    selectors: Sequence[Path] = (),
    alarms: Sequence[Alarm] = (),
    agreement: Agreement | None = None,
    model_files: Unchanged | None = None,
    force: bool = False,
    workers: int | None = 1,
) -> StoredAudit:
    """Audit a frozen classifier, or resume an earlier run of the same audit.

    Selectors are fitted on the splits ``train`` and ``val``; then the tiles of every slide in the
    audited split are ranked, revealed and deleted. A slide that cannot be audited is skipped and
    listed. A killed run resumes where it stopped and ends with the same bytes.

    Args:
        backbone: The classifier; the audit runs on its device and leaves it unchanged.
        cohort: The slides; classes in the classifier's order. Labels are optional.
        settings: Rankings, counts, seeds, recipe.
        out: The audit folder.
        name: Display name of the model.
        split_seed: Seed of the patient split, if the cohort has no splits.
        sources: Where model and cohort came from, for the manifest.
        notes: Sentences for the report.
        model_notes: What was assumed when the model was loaded.
        trained_on: Slides that the model was trained on, if known.
        record: What the model's folder says of its training, to compare this cohort with.
        selectors: Folders of fitted selectors, one per seed, instead of fitting them here.
        alarms: What was found wrong while model and cohort were read.
        agreement: How answers of the user's own code were met, if they were given.
        model_files: Files that the model was loaded from; they must stay as they are, too.
        force: Replace another audit in the folder.
        workers: Processes that reveal blocks of slides side by side; None for one per core, where
            every one has at least two blocks. Their number changes no byte.

    Raises:
        FociError: If model, cohort and settings do not fit together, the folder holds something
            else or another run is using it, no slide can be audited, the classifier is not
            deterministic, or its weights, answers or files or the features change during the audit.
    """
    folder = Path(out)
    with RunLog(folder, f"audit of {name}", held=True) as log:
        announce(cohort, model_notes, alarms)
        ready = PretrainedSelectors.read(selectors, backbone, settings)
        cohort, settings, changed = admit(backbone, cohort, settings, fits=ready is None)
        features = Unchanged(files_read(cohort))
        inputs = run_inputs(
            backbone, cohort, settings, split_seed, {} if ready is None else ready.hashes
        )
        versions = versions_of(backbone)
        if state_of(folder, inputs, versions, force=force) == "finished":
            return _finished(folder)
        check_width(cohort)
        check_function(backbone, cohort)
        steady = check_deterministic(backbone, cohort)
        with (
            frozen_gc(),
            locked_run_folder(folder, inputs, versions, force=force) as state,
        ):
            if state == "finished":  # by another run, while this one checked the model
                return _finished(folder)
            if state == "new":
                manifest = new_manifest(
                    backbone, settings, inputs,
                    name=name, classes=cohort.classes, sources=sources or {},
                    model_notes=model_notes,
                    overlapping_patients=overlapping_patients(cohort),
                    agreement=agreement,
                )  # fmt: skip
                write_manifest(folder, manifest)
            else:
                manifest = read_manifest(folder)
                _LOG.info("%s: resuming with what is there", folder)
            log.begin()  # with a manifest the folder is known to hold an audit
            division = split_slides(cohort, settings, split_seed, fits=ready is None)
            for slide in division.skipped[len(cohort.skipped) :]:
                _LOG.info("skipped %s: %s", slide.slide_id, slide.skipped)
            for note in (*division.notes[len(cohort.notes) :], *changed):
                _LOG.info(line_of(note))
            parts = PartialResults(folder)
            slides = division.audited.slides
            blocks = n_blocks(slides, settings.block)
            workers = workers or default_workers(blocks, device_and_dtype(backbone)[0])
            if workers > 1:
                preload()
            if ready is not None:
                ready.place(folder)
            with eval_mode(backbone):
                fitted_on = division.fitting
                fitted = (
                    fit_selectors(backbone, fitted_on, settings, folder)
                    if ready is not None or fitted_on is not None
                    else {}
                )
                for note in on_fitting(fitted):
                    _LOG.info("note: %s", note)
                manifest = with_readout(manifest, backbone, fitted_on, fitted)
                settings = settings.model_copy(update={"readout": manifest.settings.readout})
                jobs = ranking_jobs(settings, fitted)
                reveal = SlideReveal(backbone, settings, cohort.classes)
                work = BlockReveal(cohort.store, reveal, jobs, parts, steady)
                if manifest.threads is None:  # a run that goes on keeps those of its first part
                    manifest = manifest.model_copy(update={"threads": threads_of(workers)})
                    write_manifest(folder, manifest)
                agreements = Agreements(columns_of(jobs))
                try:
                    with Assembly(folder, parts, blocks, jobs, agreements.add) as assembly:
                        reveal_blocks(
                            slides, work,
                            workers=workers, threads=manifest.threads, spare=assembly.merge_next,
                        )  # fmt: skip
                        if steady is not None:
                            steady.check("at the end of the run")
                        for files in (features, model_files):
                            if files is not None:
                                files.check("the audit")
                        assembly.finish([slide.slide_id for slide in slides], division.skipped)
                except ChangedError:
                    remove_parts(folder)
                    raise

            audit = StoredAudit(folder)
            summary = _conclude(audit, settings, agreements.over_slides())
            learned = {slide.slide_id for slide in division.fitting or ()}
            encoders = {name: e for name, e in cohort.store.encoders.items() if name in learned}
            found = [
                *alarms,
                *find_alarms(
                    audit.slides, audit.measured(settings).views, cohort.classes,
                    record=record, trained_on=trained_on, fitted=encoders,
                    overlapping=manifest.overlapping_patients,
                ),
            ]  # fmt: skip
            changed = (*changed, *not_compared(audit.slides, record))
            left_out = {slide.slide_id for slide in audit.skipped}
            many = many_left_out(cohort, len(audit.slides), left_out)
            said = [*notes, *model_notes, *division.notes, *changed, *on_fitting(fitted)]
            manifest = manifest.model_copy(
                update={
                    "slides": SlideCounts(
                        train=division.count("train"),
                        val=division.count("val"),
                        audited=len(audit.slides),
                        skipped=len(audit.skipped),
                    ),
                    "features_sha256": features_digest(audit.slides),
                    "selectors": [described(selector, folder) for selector in fitted.values()],
                    "alarms": found,
                    "notes": [*([many] if many else []), *said, *in_words(manifest.readout)],
                    "answers": summary.answers.in_short,
                    "files": file_hashes(folder),
                    "finished": now(),
                    "status": "complete",
                }
            )
            write_manifest(folder, manifest)
            with contextlib.suppress(OSError):
                remove_parts(folder)
        return StoredAudit(folder, audit._measured)


def _finished(folder: Path) -> StoredAudit:
    """Open an audit that an earlier run has completed."""
    with contextlib.suppress(OSError, FociError), alone_in(folder):  # killed at its very end
        remove_parts(folder)
        tidy(folder)
    _LOG.info("%s: this audit is complete, nothing is computed again", folder)
    return StoredAudit.load(folder)


def _conclude(
    audit: StoredAudit, settings: AuditSettings, agreement: Sequence[PairAgreement]
) -> Summary:
    """Measure every slide once, then write the summary and the CSV tables."""
    measured = audit.measured(settings)
    classes, n_skipped = audit.manifest.classes, len(audit.skipped)
    summary = summarise(measured, audit.curves, classes, settings, agreement, n_skipped)
    write_whole(audit.folder / SUMMARY, summary.to_json())
    write_tables(audit.folder / TABLES, summary, measured, audit.slides, audit.skipped)
    return summary
