"""Run an audit: prepare, fit selectors, reveal every slide, measure, conclude.

A killed run resumes where it stopped and ends with the same bytes: selectors that are fitted are
loaded (:mod:`foci.audits.selectors`), shards of slides that are written are kept
(:mod:`foci.audits.run_folder`), and the manifest decides whether a folder holds this very audit
(:mod:`foci.audits.manifest`). Under SLURM :func:`array_job` does all that comes before the shards,
:func:`run_shards` computes some of them, and :func:`run` completes the audit.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from foci.audits.alarms import find_alarms, not_compared
from foci.audits.audit import StoredAudit
from foci.audits.folder import (
    DECIDING_SLIDES,
    MANIFEST,
    PARTS,
    SELECTORS,
    SUMMARY,
    TABLES,
    read_object,
)
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
from foci.audits.measure import Shard, mean_curves
from foci.audits.null_maps import draw_null_maps
from foci.audits.numbers import mean_agreement, summarise
from foci.audits.outputs import with_sides
from foci.audits.patients import deciding_slides, in_one_sentence
from foci.audits.prepare import (
    DriftCheck,
    Prepared,
    SplitSlides,
    check_time,
    many_left_out,
    new_manifest,
    prepare,
    split_slides,
)
from foci.audits.reveal import (
    ShardReveal,
    SlideReveal,
    default_workers,
    n_shards,
    reveal_shards,
    threads_of,
)
from foci.audits.run_folder import (
    AUDITED,
    Shards,
    features_digest,
    locked_run_folder,
    remove_receipts,
    remove_results,
    tidy,
)
from foci.audits.selectors import described, fit, fit_selectors, in_words, on_fitting
from foci.audits.settings import EVIDENCE, AuditSettings
from foci.audits.sources import Sources, announce, cut_slides
from foci.audits.tables import as_csv, write_tables
from foci.backbones.freezing import device_and_dtype, eval_mode
from foci.bags import Slide
from foci.bags.cohort import line_of
from foci.engines import slurm
from foci.engines.base import Task
from foci.errors import ChangedError, FociError
from foci.files.atomic import write_whole
from foci.files.hashes import was_changed, with_own_hash
from foci.files.lock import alone_in, check_locks
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
        workers: Processes that compute shards of slides side by side; None for one per core, where
            every one has at least two shards. Their number changes no byte.
        address: Of a Ray cluster that computes them instead: ``"auto"`` or ``HOST:PORT``.
        selectors: Folders of fitted selectors, one per seed, instead of fitting them here.
        yes: Run also if it takes more than eight hours and nobody watches.
    """

    force: bool = False
    workers: int | None = 1
    selectors: Sequence[Path] = ()
    yes: bool = False
    address: str | None = None


@dataclass(frozen=True)
class Started:
    """An audit whose selectors are fitted and whose manifest is frozen: shards only read it."""

    prepared: Prepared
    slides: SplitSlides
    fitted: Mapping[int, FittedSelector]
    manifest: Manifest
    work: ShardReveal
    workers: int


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
    with _started(sources, settings, Path(out), options) as found:
        if isinstance(found, StoredAudit):
            return found
        files, means = _reveal(found, options.address)
        return _conclude(found, files, means)


@contextlib.contextmanager
def _started(
    sources: Sources, settings: AuditSettings, folder: Path, options: RunOptions
) -> Iterator[Started | StoredAudit]:
    """Do everything that comes before the shards, in a locked folder; or open a finished audit."""
    with RunLog(folder, f"audit of {sources.name}", held=True) as log:
        announce(sources.cohort, sources.model_notes, sources.alarms)
        sources, settings = with_sides(sources, settings)
        prepared = prepare(sources, settings, options.selectors)
        inputs, versions = prepared.inputs, prepared.versions
        if state_of(folder, inputs, versions, force=options.force) == "finished":
            yield _finished(folder)
            return
        drift = prepared.check_model()
        if drift is not None:
            prepared = replace(prepared, notes=(*prepared.notes, *drift.notes))
        with (
            frozen_gc(),
            locked_run_folder(folder, inputs, versions, force=options.force) as state,
            eval_mode(sources.backbone),
        ):
            if state == "finished":  # by another run, while this one checked the model
                yield _finished(folder)
                return
            manifest = _manifest(folder, state, prepared)
            log.begin()  # with a manifest the folder is known to hold an audit
            slides = _divide(prepared)
            shards = n_shards(len(slides.audited.slides), prepared.settings.block)
            device = device_and_dtype(sources.backbone)[0]
            workers = options.workers or default_workers(shards, device)
            check_time(prepared.backbone, slides.audited, workers=workers, yes=options.yes)
            if workers > 1:
                preload()
            fitted, manifest = fit(
                prepared.backbone, slides.fitting, prepared.settings, prepared.pretrained,
                folder, manifest,
            )  # fmt: skip
            if manifest.threads is None:  # a resumed run keeps those of its first part
                several = workers > 1 or options.address is not None
                manifest = manifest.model_copy(update={"threads": threads_of(1 + several)})
                write_manifest(folder, manifest)
            work = _work(prepared, slides.audited.slides, fitted, manifest, folder, drift)
            yield Started(prepared, slides, fitted, manifest, work, workers)


def _work(
    prepared: Prepared,
    slides: Sequence[Slide],
    fitted: Mapping[int, FittedSelector],
    manifest: Manifest,
    folder: Path,
    drift: DriftCheck | None,
) -> ShardReveal:
    """What computes the shards."""
    readout = {"readout": manifest.settings.readout}
    settings = prepared.settings.model_copy(update=readout)
    backbone, cohort = prepared.backbone, prepared.cohort
    null_maps = draw_null_maps(settings, Revealer(backbone, recheck=()), slides, cohort.store)
    jobs = ranking_jobs(settings, fitted, null_maps)
    one = SlideReveal(backbone, settings, cohort.classes, prepared.sources.every_label)
    store = cohort.store.read_once()
    return ShardReveal(tuple(slides), store, one, jobs, Shards(folder.resolve()), drift)


def _reveal(started: Started, address: str | None) -> tuple[dict[str, str], list[Path]]:
    """Compute all shards, and see that nothing has changed meanwhile.

    Returns:
        Hashes of all parts, and files for the mean curves; see :meth:`Shards.finish`.

    Raises:
        ChangedError: If model, feature files or answers change meanwhile; no shard is kept then.
    """
    work, prepared = started.work, started.prepared
    try:
        reveal_shards(
            work, workers=started.workers, threads=started.manifest.threads, address=address
        )
        if work.drift is not None:
            work.drift.check("at the end of the run")
        prepared.check_files()
    except ChangedError:
        remove_results(work.shards.folder)
        raise
    names = [slide.slide_id for slide in work.slides]
    return work.shards.finish(len(work), names, started.slides.skipped)


def _finished(folder: Path) -> StoredAudit:
    """Open an audit that an earlier run has completed."""
    with contextlib.suppress(OSError, FociError), alone_in(folder):  # killed at its very end
        remove_receipts(folder)
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


def _conclude(started: Started, files: Mapping[str, str], means: Sequence[Path]) -> StoredAudit:
    """Reduce what was measured to summary, tables and alarms, and complete the manifest."""
    prepared, slides, fitted = started.prepared, started.slides, started.fitted
    sources, cohort, manifest = prepared.sources, prepared.cohort, started.manifest
    folder, settings = started.work.shards.folder, started.work.reveal.settings
    audit = StoredAudit(folder)
    shards = [Shard.read(path) for path in means]
    measured = replace(audit.joined(settings), mean_curves=mean_curves(shards))
    audit.cache[settings.kappa, settings.k_max, settings.relative] = measured
    pairs = [tuple(pair) for pair in shards[0].facts["pairs"]]
    agreed = [shard.arrays["agreement"] for shard in shards] if pairs else []
    by_pair = np.moveaxis(np.concatenate(agreed), 1, 0) if pairs else ()
    agreement = mean_agreement(dict(zip(pairs, by_pair, strict=True)))
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
        "files": file_hashes(folder, files),
        "finished": now(),
        "status": "complete",
    }
    write_manifest(folder, manifest.model_copy(update=result))
    with contextlib.suppress(OSError):
        remove_receipts(folder)
    return StoredAudit(folder, audit.cache)


# Under SLURM

SHARDS_PER_ELEMENT, MOST_ELEMENTS = 8, 1000
"""An element has to load torch and the model first; SLURM allows 1,001 unless told otherwise."""


def array_job(
    sources: Sources,
    settings: AuditSettings,
    out: str | Path,
    options: RunOptions,
    arguments: Sequence[str],
    *,
    at_once: int | None = None,
    slurm_options: Sequence[str] = (),
) -> str:
    """Do all that comes before the shards, and return the batch script that computes them.

    Args:
        sources: As in :func:`run`.
        settings: As in :func:`run`.
        out: As in :func:`run`.
        options: As in :func:`run`.
        arguments: Of ``foci audit``, without those for SLURM.
        at_once: Most elements at the same time.
        slurm_options: More of ``#SBATCH``, such as ``--partition=gpu``.

    Raises:
        FociError: If nothing is left to compute, or the file system has no locks.
    """
    folder = Path(out)
    with _started(sources, settings, folder, replace(options, workers=2)) as found:
        if isinstance(found, StoredAudit):
            raise FociError(folder, "holds this audit, complete", "see foci report")
        check_locks(folder)
        left, _ = found.work.missing()
        if not left:
            raise FociError(folder, "has no shard left to compute", "run foci audit to finish it")
        names = [slide.slide_id for slide in found.work.slides]
        (folder / PARTS).mkdir(exist_ok=True)
        write_whole(folder / PARTS / AUDITED, json.dumps(with_own_hash({"slides": names})))
        elements = min(MOST_ELEMENTS, -(-len(found.work) // SHARDS_PER_ELEMENT))
        gpus = int(device_and_dtype(sources.backbone)[0].type != "cpu")
        receipts = f"{shlex.quote(str(folder.resolve() / PARTS))}/*.part"
        return slurm.script(
            folder, sources.name, sorted({shard % elements for shard in left}),
            ["audit-shard", *arguments, "--of", str(elements)], ["audit", *arguments],
            threads=found.manifest.threads or 1, gpus=gpus, at_once=at_once,
            options=(f"--chdir={Path.cwd()}", *slurm_options),
            complete=f'[ "$(ls {receipts} | wc -l)" -eq {len(found.work)} ]',
        )  # fmt: skip


def run_shards(
    sources: Sources, settings: AuditSettings, out: str | Path, index: int, of: int
) -> int:
    """Compute every ``of``-th shard, from ``index`` on, of an audit that :func:`array_job` started.

    Returns:
        How many this process has computed.

    Raises:
        FociError: If there is no such audit in the folder, or as in :func:`run`.
    """
    folder = Path(out)
    again = "write the job again with foci audit --slurm"
    if not (folder / MANIFEST).is_file():
        raise FociError(folder, "holds no audit that was started", again)
    manifest = read_manifest(folder)
    known = {name: getattr(manifest.settings, name) for name in ("cut", "tau")}
    sources, settings = with_sides(sources, settings.model_copy(update=known))
    prepared = prepare(sources, settings, ())
    if state_of(folder, prepared.inputs, prepared.versions, force=False) == "finished":
        return 0
    place = folder / PARTS / AUDITED
    if not place.is_file() or was_changed(names := read_object(place)):
        raise FociError(place, "is missing or was changed", again)
    threads = manifest.threads or 1
    torch.set_num_threads(threads)
    with eval_mode(sources.backbone):
        drift = prepared.check_model()
        seeds = (
            fit_selectors(prepared.backbone, None, prepared.settings, folder)
            if (folder / SELECTORS).is_dir()
            else {}
        )
        slides = [prepared.cohort[name] for name in names["slides"]]
        work = _work(prepared, slides, seeds, manifest, folder, drift)
        wanted = [shard for shard in range(len(work)) if shard % of == index]
        left = [shard for shard in wanted if not work.shards.complete(shard)]
        for shard in left:
            work(Task(str(shard), threads=threads))
            _LOG.info("shard %d of %d is done", shard + 1, len(work))
        prepared.check_files()
    return len(left)
