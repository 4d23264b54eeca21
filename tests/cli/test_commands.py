"""The command line as a person meets it."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from foci import __version__
from tests.cli.invoke import Foci
from tests.makers import features as write
from tests.makers.cohorts import Row, write_cohort


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    rows = (
        Row(f"s{i}", write.features(seed=i), f"c{i}", "ab"[i % 2], "train" if i < 12 else "test")
        for i in range(24)
    )
    return write_cohort(tmp_path, rows)


def test_help_and_version_do_not_import_torch() -> None:
    code = "import sys, foci.cli; sys.argv = ['foci', '--help']\n" \
           "try: foci.cli.main()\nexcept SystemExit: pass\n" \
           "heavy = {'torch', 'scipy', 'h5py', 'pyarrow', 'openslide', 'matplotlib', 'PIL'}\n" \
           "heavy &= set(sys.modules)\n" \
           "sys.exit(f'imported {heavy}' if heavy else 0)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "foci", "--version"], capture_output=True, text=True, check=False
    )
    first, *others = done.stdout.splitlines()
    assert first == f"foci {__version__}, Python {platform.python_version()}"
    versions = dict(line.split(" ", 1) for line in others)
    assert versions["torch"] == importlib.metadata.version("torch")
    assert versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert versions["numpy"] == np.__version__
    assert {"timm", "ray", "openslide-python", "starlette"} < set(versions)


def test_completion_knows_the_commands() -> None:
    words = {"_FOCI_COMPLETE": "complete_bash", "COMP_WORDS": "foci au", "COMP_CWORD": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name("foci")],
        env={**os.environ, **words}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["audit"]


def test_doctor_table_and_exit_codes(foci: Foci, cohort: Path) -> None:
    good = foci.done("doctor", cohort / "features", "--labels", cohort / "labels.csv")
    assert "PASS" in good.out
    assert "Ready to use, 1 warning." in good.out
    (cohort / "features" / "s3.h5").write_bytes(b"cut")
    bad = foci("doctor", cohort / "features", "--labels", cohort / "labels.csv")
    assert bad.code == 1
    assert "Not ready: 1 failed" in bad.out
    assert "Traceback" not in bad.err


def test_doctor_json(foci: Foci, cohort: Path) -> None:
    done = foci("doctor", cohort / "features", "--json")
    checks = json.loads(done.out)
    assert {"name", "status", "detail", "fix", "items"} == set(checks[0])
    assert all(check["status"] == "PASS" for check in checks)


def test_a_refusal_is_one_line_without_a_traceback(foci: Foci, tmp_path: Path) -> None:
    foci.refused("cohort", "brca", tmp_path / "gone.tsv")
    assert not (tmp_path / "cohort.csv").exists()


def test_cohort_from_published_folders(foci: Foci, tmp_path: Path) -> None:
    for name, n in (("TCGA-LUAD", 20), ("TCGA-LUSC", 20)):
        (tmp_path / name).mkdir()
        for i in range(n):
            barcode = f"TCGA-{name[-2:]}-{i:04d}-01Z-00-DX1.{write.UUID}"
            write.uni2h(tmp_path / name / f"{barcode}.h5", write.features(), write.grid())
    done = foci.done(
        "cohort", "nsclc", tmp_path / "TCGA-LUAD", tmp_path / "TCGA-LUSC", "--out", "nsclc.csv",
    )  # fmt: skip
    assert "28 slides (14 LUAD, 14 LUSC)" in done.out
    assert "note: " in done.out
    table = (tmp_path / "nsclc.csv").read_text().splitlines()
    assert len(table) == 41
    assert table[0].startswith("slide_id,case_id,label,split")


def test_demo_cohort(foci: Foci, tmp_path: Path) -> None:
    done = foci.done("demo", tmp_path / "out", "--number", "40", "--cohort-only")
    assert "Ready to use" in done.out
    assert "synthetic" in done.out.lower()
    assert not (tmp_path / "out" / "models").exists()
