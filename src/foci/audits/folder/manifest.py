"""Schema of ``manifest.json``: what was audited, with which settings, software and files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from foci.audits.folder.agreement import AgreementRecord
from foci.audits.folder.damage import read_model
from foci.audits.folder.names import MANIFEST
from foci.audits.records import Alarm, Readout, Record
from foci.audits.settings import AuditSettings
from foci.files.atomic import write_whole
from foci.files.hashes import with_own_hash


class ManifestHead(Record):
    """The part of a manifest that decides whether a run can resume in the folder.

    Attributes:
        format: Format number of the folder.
        status: ``"complete"`` once every file is there.
        key: Digest of ``run_inputs``.
        run_inputs: Everything that decides the numbers, by name.
        versions: Software versions, and the device.
        files: SHA-256 of every file that holds numbers, by its path in the folder.
        own_sha256: SHA-256 of all other entries of the manifest.
    """

    format: int
    status: Literal["running", "complete"]
    key: str
    run_inputs: dict[str, Any]
    versions: dict[str, str]
    files: dict[str, str] = Field(default_factory=dict)
    own_sha256: str | None = None


class BackboneRecord(Record):
    """The audited classifier: architecture, size, hash of its weights, kind of tile score."""

    architecture: str
    parameters: int
    fingerprint: str
    score: str
    notes: list[str]
    agreement: AgreementRecord | None = None


class SelectorRecord(Record):
    """One fitted selector: seed, gate site, recipe, chosen epoch, hash of its weights."""

    seed: int
    site: str
    recipe: str
    best_epoch: int
    weights_sha256: str


class SlideCounts(Record):
    """Number of slides used for fitting selectors (train, val), audited, and skipped."""

    train: int
    val: int
    audited: int
    skipped: int


class TruthRecord(Record):
    """Comparison of the rankings with annotated tiles.

    Attributes:
        what: What was marked, and by whom.
        n_slides: Slides with a marked tile.
        chance: Share of marked tiles: the mean precision of a random order.
        precision8: Share of marked tiles among the first 8, by column.
        average_precision: Average precision, by column.
    """

    what: str
    n_slides: int
    chance: float | None = None
    precision8: dict[str, float]
    average_precision: dict[str, float]


class Manifest(ManifestHead):
    """Record of an audit: model, settings, slides, software, hashes and answers.

    Attributes:
        name: Display name of the model.
        settings: The settings of the run.
        sources: Where model and cohort came from.
        backbone: The classifier.
        classes: Class names, in the model's order.
        split: The audited split.
        threads: Of torch, in every process that computed curves.
        started: When the run began, in UTC.
        finished: When it ended.
        slides: Number of slides by use.
        features_sha256: SHA-256 over the features of all audited slides.
        selectors: The fitted selectors.
        readout: How the validation slides chose the readout; None where they did not.
        alarms: Reasons why the numbers may not mean what they seem to mean.
        notes: Sentences for the report.
        answers: The answers of the summary in a few words, by question.
        truth: Comparison with annotated tiles, if there was one.
        maps: SHA-256 of every score file that was ranked by, by its path.
        overlapping_patients: Patients in two splits, which the user has allowed, with their splits.
    """

    name: str
    settings: AuditSettings
    sources: dict[str, str]
    backbone: BackboneRecord
    classes: list[str]
    split: str
    threads: int | None = None
    started: str
    finished: str | None = None
    slides: SlideCounts | None = None
    features_sha256: str | None = None
    selectors: list[SelectorRecord] = Field(default_factory=list)
    readout: Readout | None = None
    alarms: list[Alarm] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    answers: dict[str, str] = Field(default_factory=dict)
    truth: TruthRecord | None = None
    maps: dict[str, str]
    overlapping_patients: dict[str, tuple[str, ...]]


def now() -> str:
    """Current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an audit folder."""
    return read_model(folder / MANIFEST, Manifest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest; fields that were never set are left out."""
    content = manifest.model_dump(mode="json", exclude_unset=True)
    content["settings"] = manifest.settings.model_dump(mode="json")
    text = json.dumps(with_own_hash(content), indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / MANIFEST, text)
