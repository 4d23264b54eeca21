"""Key of a run, for resuming: everything that its numbers depend on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from foci.audits.folder.names import FORMAT
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone, CallableBackbone
from foci.backbones.freezing import eval_mode, home
from foci.bags import Cohort
from foci.bags.cohort.stamps import stamps
from foci.files.digest import digest, file_digest
from foci.selectors.identity import Identity

TABLE, FILES, MODEL = "slide table", "feature files", "model"
MAP, MAP_FILES, SELECTORS = "map", "map files", "selectors"
_ONLY_IF_GIVEN = (MAP, MAP_FILES, SELECTORS)
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
        own |= {"recipe": settings.plan.decided_by(), "fit_target": settings.fitted_for}
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
        **({SELECTORS: dict(selectors)} if selectors else {}),
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
            if name in (MODEL, TABLE, FILES, MAP_FILES, SELECTORS):
                return f"another {name}" if name in (MODEL, TABLE) else f"other {name}"
            return f"{name} = {_plain(stored.get(name))}, not {_plain(now.get(name))}"
    return "other settings"


def _model(backbone: Backbone) -> str:
    identity, scores = Identity.of(backbone), _score_probe(backbone)
    if len(backbone.state_dict()):
        return digest([identity.architecture, backbone.config, identity.fingerprint, *scores])
    return digest([identity.architecture, _rounded(identity.probe), *scores])


def _score_probe(backbone: Backbone) -> list[list[str]]:
    """The tile scores of a wrapped function for a fixed bag: no hash of weights covers them."""
    if not isinstance(backbone, CallableBackbone) or backbone.score_function is None:
        return []
    device, dtype = home(backbone)
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
