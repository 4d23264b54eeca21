"""DSMIL, mean and max pooling, MIL_fc: from a file with the published names to a finished audit."""

from pathlib import Path

import numpy as np
import pytest
import torch

from foci import rankings
from foci.audits import StoredAudit
from foci.audits.run import run
from foci.audits.sources import Sources
from foci.backbones import Backbone, load
from foci.reveal import curve
from tests.makers.audits import settings
from tests.makers.cohorts import D_IN, make_files, read

RANKINGS = ("native", "evidence", "single-tile", "selector", "random")
DSMIL = {
    "i_classifier.fc.0.weight": (1, D_IN),
    "i_classifier.fc.0.bias": (1,),
    "b_classifier.q.0.weight": (6, D_IN),
    "b_classifier.q.0.bias": (6,),
    "b_classifier.q.2.weight": (4, 6),
    "b_classifier.q.2.bias": (4,),
    "b_classifier.fcc.weight": (1, 1, D_IN),
    "b_classifier.fcc.bias": (1,),
}
MEAN_MAX = {"head.0.weight": (6, D_IN), "head.0.bias": (6,), "head.3.weight": (2, 6)}
FILES = {
    "dsmil": (DSMIL, {}),
    "mean": ({**MEAN_MAX, "head.3.bias": (2,)}, {"pooling": "mean"}),
    "max": ({**MEAN_MAX, "head.3.bias": (2,)}, {"pooling": "max"}),
    "mil_fc": (
        {
            "fc.0.weight": (6, D_IN),
            "fc.0.bias": (6,),
            "classifier.weight": (2, 6),
            "classifier.bias": (2,),
        },
        {},
    ),
}


@pytest.fixture(scope="module")
def cohort_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("cohort"))


@pytest.fixture(params=FILES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Backbone:
    shapes, options = FILES[request.param]
    torch.manual_seed(0)
    torch.save({key: torch.randn(shape) for key, shape in shapes.items()}, tmp_path / "w.pt")
    return load(tmp_path / "w.pt", **options)


def test_a_whole_audit(model: Backbone, cohort_folder: Path, tmp_path: Path) -> None:
    cohort = read(cohort_folder)
    audit: StoredAudit = run(Sources(model, cohort), settings(rankings=RANKINGS), tmp_path / "out")

    assert audit.curves.rankings == RANKINGS
    assert audit.summary.n_slides == 5
    assert audit.manifest.backbone.score == model.capabilities.score
    for direction in ("insert", "delete"):
        for stored in audit.curves.get("native", None, direction):
            bag = cohort.bag(stored.slide_id)
            order = rankings.score("native", model, bag).order.copy()
            if len(stored.ks):
                want = curve(model, bag.x, order, stored.ks, direction, engine="reference")
                np.testing.assert_allclose(stored.probs, want.numpy(), rtol=0, atol=1e-5)
