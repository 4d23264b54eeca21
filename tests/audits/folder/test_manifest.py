"""The record of a finished audit."""

import hashlib
from datetime import datetime

import torch

import foci
from foci.audits import StoredAudit
from foci.audits.manifest import file_hashes
from foci.backbones import fingerprint
from foci.files.hashes import digest
from tests.makers.audits import model, settings


def test_it_says_what_was_asked_of_what(audited: StoredAudit) -> None:
    found = audited.manifest
    assert found.format == 1
    assert found.status == "complete"
    assert found.key == digest(found.run_inputs)
    assert found.settings == settings(rankings=("native", "selector", "random"), choose_by="aukc")
    assert found.backbone.model_dump() == {
        "architecture": "abmil",
        "parameters": sum(p.numel() for p in model().parameters()),
        "fingerprint": fingerprint(model()),
        "score": "native",
        "notes": [],
        "agreement": None,
    }
    assert (found.classes, found.split, found.name) == (["a", "b"], "test", "model")
    assert found.slides.model_dump() == {"train": 6, "val": 3, "audited": 5, "skipped": 0}
    assert found.versions["torch"] == torch.__version__
    assert found.versions["foci"] == foci.__version__
    started, finished = (datetime.fromisoformat(t) for t in (found.started, found.finished))
    assert started <= finished
    assert started.utcoffset() is not None


def test_hashes(audited: StoredAudit) -> None:
    found = audited.manifest
    assert found.files == file_hashes(audited.folder)
    for name, digested in found.files.items():
        data = (audited.folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digested
    assert set(found.files) >= {
        "slides.parquet", "curves.parquet", "rankings.parquet", "summary.json",
        "tables/slides.csv", "selectors/seed-0/selector.safetensors",
    }  # fmt: skip
    (selector,) = found.selectors
    weights = found.files["selectors/seed-0/selector.safetensors"]
    assert (selector.seed, selector.weights_sha256) == (0, weights)
    lines = "".join(f"{s.slide_id} {s.features_sha256}\n" for s in audited.slides)
    assert found.features_sha256 == hashlib.sha256(lines.encode()).hexdigest()
