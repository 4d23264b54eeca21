"""Schema of ``manifest.json``: what was audited, with which settings, software and files.

A stored audit is read without torch: the functions that look at a model import it themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from foci._version import __version__
from foci.audits.folder import (
    CURVES,
    FORMAT,
    MANIFEST,
    RANKINGS,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
    read_model,
)
from foci.audits.records import Alarm, Readout, Record
from foci.audits.settings import AuditSettings
from foci.audits.stored import AgreementRecord
from foci.bags import Cohort
from foci.bags.cohort import stamps
from foci.files.atomic import write_whole
from foci.files.hashes import digest, file_digest, with_own_hash

if TYPE_CHECKING:
    from foci.backbones import Backbone


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


# Key of a run, for resuming: everything that its numbers depend on.


TABLE, FILES, MODEL = "slide table", "feature files", "model"
MAP, MAP_FILES, GIVEN_SELECTORS = "map", "map files", "selectors"
_ONLY_IF_GIVEN = (MAP, MAP_FILES, GIVEN_SELECTORS)
"""Left out of the key of an audit without them."""
_INDIFFERENT = {"memory_gb", "profile"}
_PROBE_DIGITS, _PROBE_TILES = 5, 8


def run_inputs(
    backbone: Backbone,
    cohort: Cohort,
    settings: AuditSettings,
    split_seed: int,
    selectors: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Collect everything that decides the numbers, by name; long lists as a hash.

    Feature files are known by name, size and time of change: nothing is read.

    The confidences ``kappas`` belong to it: probabilities close to one of them are stored as
    computed in float64.

    Args:
        backbone: The classifier.
        cohort: The slides.
        settings: Of the audit.
        split_seed: Of the patient split.
        selectors: Hash of every selector that was not fitted in the audit, by seed.
    """
    own = settings.model_dump(mode="json", exclude={*_INDIFFERENT, "fit_target"})
    own["reveals_every_count"] = settings.reveals_every_count
    if settings.map is None:
        del own[MAP]
    if settings.fits_selectors:
        own |= {"recipe": settings.plan.hash_fields(), "fit_target": settings.fitted_for}
    store = cohort.store
    rows = [[s.slide_id, s.case_id, s.label, s.split] for s in cohort]
    skipped = [[s.slide_id, s.reason] for s in cohort.skipped]
    return {
        "format": FORMAT,
        MODEL: _model(backbone),
        "classes": list(cohort.classes),
        **own,
        "split_seed": split_seed,
        "n_cap": store.n_cap,
        "layout": store.layout,
        "mpp": store.mpp,
        TABLE: digest([rows, skipped]),
        FILES: digest(stamps(cohort)),
        **({MAP_FILES: map_digests(settings)} if settings.map_files else {}),
        **({GIVEN_SELECTORS: dict(selectors)} if selectors else {}),
    }


def map_digests(settings: AuditSettings) -> dict[str, str]:
    """SHA-256 of every score file, by its path."""
    return {str(path): file_digest(path) for path in settings.map_files.values()}


def first_difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the first difference between two runs.

    >>> first_difference({"kappa": 0.9, "k_max": 256}, {"kappa": 0.8, "k_max": 128})
    'kappa = 0.9, not 0.8'
    >>> first_difference({"model": "0a1b"}, {"model": "ff00"})
    'another model'
    """
    for name in (*now, *(name for name in _ONLY_IF_GIVEN if name not in now)):
        if stored.get(name) != now.get(name):
            if name in (MODEL, TABLE, FILES, MAP_FILES, GIVEN_SELECTORS):
                return f"another {name}" if name in (MODEL, TABLE) else f"other {name}"
            return f"{name} = {_plain(stored.get(name))}, not {_plain(now.get(name))}"
    return "other settings"


def _model(backbone: Backbone) -> str:
    from foci.selectors.selector import Identity

    identity, scores = Identity.of(backbone), _score_probe(backbone)
    if len(backbone.state_dict()):
        return digest([identity.architecture, backbone.config, identity.fingerprint, *scores])
    return digest([identity.architecture, _rounded(identity.probe), *scores])


def _score_probe(backbone: Backbone) -> list[list[str]]:
    """The tile scores of a wrapped function for a fixed bag: no hash of weights covers them."""
    import torch

    from foci.backbones import CallableBackbone
    from foci.backbones.freezing import device_and_dtype, eval_mode

    if not isinstance(backbone, CallableBackbone) or backbone.score_function is None:
        return []
    device, dtype = device_and_dtype(backbone)
    bag = np.random.default_rng(1).standard_normal((_PROBE_TILES, backbone.d_in), np.float32)
    try:
        with eval_mode(backbone), torch.no_grad():
            scores = backbone.scores(torch.from_numpy(bag).to(device, dtype))
    except Exception:  # a function that knows its own bags only; the audit will tell
        return [[]]
    return [_rounded(scores.double().tolist())]


def _rounded(values: Iterable[float]) -> list[str]:
    return [f"{value:.{_PROBE_DIGITS}g}" for value in values]


def _plain(value: Any) -> str:
    if isinstance(value, dict) and "name" in value:  # a recipe
        return str(value["name"])
    return json.dumps(value) if isinstance(value, (list, dict)) else str(value)


# Manifest of a new run, and the hashes of the files that a run has written.


def versions_of(backbone: Backbone) -> dict[str, str]:
    """Versions of foci and torch, and the device; a run resumes only with the same ones."""
    import torch

    from foci.backbones.freezing import device_and_dtype

    return {
        "foci": __version__,
        "torch": torch.__version__,
        "device": device_and_dtype(backbone)[0].type,
    }


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that holds numbers or weights, by its path in the folder."""
    from foci.selectors.saved import RESULT

    paths = [folder / name for name in (SLIDES, CURVES, RANKINGS, SUMMARY)]
    paths += [folder / TABLES / name for name in sorted(TABLE_FILES)]
    paths += sorted(path for name in RESULT for path in (folder / SELECTORS).glob(f"seed-*/{name}"))
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
