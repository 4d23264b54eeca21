"""The manifest of an audit: what was audited, with which settings, software and files.

It decides whether a run may resume in a folder: only where the key is the same, a digest of
everything that decides the numbers. A stored audit is read without torch: the functions that look
at a model import it themselves.
"""

from __future__ import annotations

import contextlib
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
    FORMAT,
    MANIFEST,
    OPTIONAL_TABLES,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
    lost_file,
    read_model,
)
from foci.audits.records import Alarm, Readout, Record, TruthRecord
from foci.audits.settings import AuditSettings
from foci.bags import Cohort
from foci.bags.cohort import stamps
from foci.errors import FociError
from foci.files.atomic import TEMPORARY, write_whole
from foci.files.hashes import check_format, digest, file_digest, with_own_hash
from foci.files.lock import LOCK

if TYPE_CHECKING:
    from foci.backbones import Backbone


class ManifestHead(Record):
    """The part of a manifest that decides whether a run can resume in the folder.

    Attributes:
        status: ``"complete"`` once every file is there.
        key: Digest of ``run_inputs``.
        run_inputs: Everything that decides the numbers, by name.
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


class TriedRecord(Record):
    """One variant of a checkpoint: its options, and its largest difference from known answers."""

    options: dict[str, Any]
    difference: float


class AgreementRecord(Record):
    """Which options of a checkpoint were tried, and which agreed with known answers."""

    file: str
    kind: str
    slides: int
    tolerance: float
    taken: TriedRecord
    tried: list[TriedRecord]


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
    """Number of slides used for fitting selectors (train, val), audited, and skipped.

    Attributes:
        cut: Audited slides of which a tile cap has left out tiles.
    """

    train: int
    val: int
    audited: int
    skipped: int
    cut: int = 0


class Manifest(ManifestHead):
    """Record of an audit: model, settings, slides, software, hashes and answers.

    Attributes:
        name: Display name of the model.
        sources: Where model and cohort came from.
        threads: Of torch, in every process that computed curves.
        started: When the run began, in UTC.
        features_sha256: SHA-256 over the hashes of the features of all audited slides.
        readout: How the validation slides chose the readout; None where they did not.
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


# May a run resume?


State = Literal["new", "started", "finished"]

_REDO = "give --force to redo it, or another --out"
TABLE, FILES, MODEL = "slide table", "feature files", "model"
MAP, MAP_FILES, GIVEN_SELECTORS = "map", "map files", "selectors"
_ONLY_IF_GIVEN = (MAP, MAP_FILES, GIVEN_SELECTORS)
"""Left out of the key of an audit without them."""


def run_inputs(
    backbone: Backbone,
    cohort: Cohort,
    settings: AuditSettings,
    split_seed: int,
    selectors: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Collect everything that decides the numbers, by name; long lists as a hash.

    Feature files are known by name, size and time of change: nothing is read. The confidences
    ``kappas`` belong to it: probabilities close to one of them are stored as computed in float64.
    ``selectors`` are the hashes, by seed, of those that are not fitted in the audit.
    """
    own = settings.model_dump(mode="json", exclude={"memory_gb", "profile", "fit", "fit_target"})
    own["reveals_every_count"] = settings.reveals_every_count
    if settings.map is None:
        del own[MAP]
    if settings.fits_selectors:
        own |= {"recipe": settings.plan.hash_fields(), "fit_target": settings.fitted_for}
    store = cohort.store
    rows = [[s.slide_id, s.case_id, s.label, s.split] for s in cohort]
    skipped = [[s.slide_id, s.reason] for s in cohort.skipped]
    maps = {str(path): file_digest(path) for path in settings.map_files.values()}
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
        **({MAP_FILES: maps} if maps else {}),
        **({GIVEN_SELECTORS: dict(selectors)} if selectors else {}),
    }


def first_difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the first difference between two runs.

    >>> first_difference({"kappa": 0.9, "k_max": 256}, {"kappa": 0.8, "k_max": 128})
    'kappa = 0.9, not 0.8'
    >>> first_difference({"model": "0a1b"}, {"model": "ff00"})
    'another model'
    """
    for name in (*now, *(name for name in _ONLY_IF_GIVEN if name not in now)):
        if stored.get(name) != now.get(name):
            if name in (MODEL, TABLE):
                return f"another {name}"
            if name in (FILES, MAP_FILES, GIVEN_SELECTORS):
                return f"other {name}"
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
    bag = np.random.default_rng(1).standard_normal((8, backbone.d_in), np.float32)
    try:
        with eval_mode(backbone), torch.no_grad():
            scores = backbone.scores(torch.from_numpy(bag).to(device, dtype))
    except Exception:  # a function that knows its own bags only; the audit will tell
        return [[]]
    return [_rounded(scores.double().tolist())]


def _rounded(values: Iterable[float]) -> list[str]:
    return [f"{value:.5g}" for value in values]


def _plain(value: Any) -> str:
    if isinstance(value, dict) and "name" in value:  # a recipe
        return str(value["name"])
    return json.dumps(value) if isinstance(value, (list, dict)) else str(value)


def state_of(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> State:
    """Whether a folder is new, started or finished for this audit; refuse to mix two audits.

    With ``force`` a folder that holds an audit is new, too; one that holds other files never is.
    See :func:`run_inputs` and :func:`versions_of`.
    """
    head = _head(folder)
    if head is None or force:
        return "new"
    check_format(folder / MANIFEST, {"format": head.format}, FORMAT, _REDO)
    if head.key != digest(inputs):
        difference = first_difference(head.run_inputs, inputs)
        raise FociError(folder, f"holds an audit with {difference}", _REDO)
    if head.status == "complete":
        gone = lost_file(folder, head.files)
        if gone is not None:
            raise FociError(folder, f"holds an audit without its {gone}", "give --force")
        return "finished"
    for name, version in versions.items():
        first = head.versions.get(name)
        if first != version:
            what = f"holds an audit that was started with {name} {first}, this is {version}"
            raise FociError(folder, what, f"resume it with {first}, or {_REDO}")
    return "started"


def _head(folder: Path) -> ManifestHead | None:
    """Read the head of the folder's manifest; None if a new audit may start there."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise FociError(folder, "is a file", "choose another --out")
    path = folder / MANIFEST
    if not path.is_file():
        names = (entry.name for entry in folder.iterdir())
        if all(name == LOCK or name.startswith(TEMPORARY) for name in names):
            return None
        raise FociError(folder, "is not empty and holds no audit", "choose another --out")
    with contextlib.suppress(FociError):
        head = read_model(path, ManifestHead)
        if head.key:
            return head
    raise FociError(path, "is not the manifest of an audit", "choose another --out")


def versions_of(backbone: Backbone) -> dict[str, str]:
    """Versions of foci and torch, and the device; a run resumes only with the same ones."""
    import torch

    from foci.backbones.freezing import device_and_dtype

    return {
        "foci": __version__,
        "torch": torch.__version__,
        "device": device_and_dtype(backbone)[0].type,
    }


def file_hashes(folder: Path, parts: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of every file that holds numbers or weights, by its path in the folder.

    Those of the parts were taken when they were written.
    """
    from foci.selectors.saved import RESULT

    paths = [folder / name for name in (SLIDES, SUMMARY)]
    paths += [folder / TABLES / name for name in sorted(TABLE_FILES)]
    paths += [path for name in OPTIONAL_TABLES if (path := folder / TABLES / name).is_file()]
    paths += sorted(path for name in RESULT for path in (folder / SELECTORS).glob(f"seed-*/{name}"))
    return dict(parts) | {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
