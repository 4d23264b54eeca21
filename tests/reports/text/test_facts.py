"""Facts about an audit in its report: settings, sources, hashes."""

from pathlib import Path

from foci.audits import StoredAudit
from foci.reports.text import audit_facts, record_of, settings_of
from tests.makers.folders import bare_manifest
from tests.reports.test_report import text_of


def test_the_line_under_the_title(audit: StoredAudit, unlabelled: StoredAudit) -> None:
    facts = dict(audit_facts(audit.manifest, audit.summary))
    assert facts["classifier"] == "abmil (132,609 parameters)"
    assert facts["slides"] == "20 of 10 patients, 2 skipped in the whole cohort"
    assert facts["AUC"] == f"{audit.summary.full_bag.auc:.3f}"
    assert facts["confidence κ"] == "0.9"
    assert "AUC" not in dict(audit_facts(unlabelled.manifest, unlabelled.summary))


def test_one_is_no_plural(audit: StoredAudit) -> None:
    summary = audit.summary.model_copy(update={"n_cases": 1, "k_max": 1, "n_skipped": 0})
    facts = dict(audit_facts(audit.manifest, summary))
    assert (facts["slides"], facts["at most"]) == ("20 of 1 patient", "1 tile")


def test_a_bare_manifest_will_do(audit: StoredAudit) -> None:
    bare = bare_manifest("m")
    facts = dict(audit_facts(bare, audit.summary))
    assert facts["classifier"] == "abmil (1 parameters)"
    assert "split" not in facts
    assert [name for name, _ in record_of(bare)] == ["audit key", "started", "weights"]


def test_the_record_has_every_hash(audit: StoredAudit) -> None:
    record = dict(record_of(audit.manifest))
    assert record["weights"] == "f" * 64
    assert record["features"] == "a" * 64
    assert record["SHA-256: curves.parquet"] == audit.manifest.files["curves.parquet"]
    assert record["selector, seed 1"].endswith(f"epoch 10, weights {'1' * 64}")
    assert record["finished"] == "2026-11-16T08:03:20+00:00"


def test_settings_are_words(audit: StoredAudit) -> None:
    settings = dict(settings_of(audit.manifest.settings))
    assert settings["rankings"] == "native, selector, random"
    assert settings["map"] == "none"
    assert settings["recipe_settings"] == "none"


def test_a_map_is_named_without_the_path_to_it(audit: StoredAudit) -> None:
    stored = audit.manifest.settings
    changes = {
        "map": "from-file=/home/me/grad cam.csv",
        "rankings": ("native", "from-file=/a/b.csv"),
    }
    settings = dict(settings_of(stored.model_copy(update=changes)))
    assert settings["map"] == "from-file=grad cam.csv"
    assert settings["rankings"] == "native, from-file=b.csv"
    manifest = audit.manifest.model_copy(update={"maps": {"/home/me/grad cam.csv": "e" * 64}})
    assert dict(record_of(manifest))["SHA-256: grad cam.csv"] == "e" * 64


def test_truth_by_ranking(page: Path) -> None:
    text = text_of(page)
    assert "native 0.41 0.33 selector 0.83 0.71 random 0.06 0.06 20 slides with marked" in text
