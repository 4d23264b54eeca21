"""Damaged files of every kind: refused in one line or read, within 30 seconds and 2 GB.

``FOCI_FUZZ_CASES=5000 pytest tests/fuzzing`` runs more of them, ``FOCI_FUZZ_SEED`` others.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing.harness import Figures, _run, fuzz
from tests.fuzzing.subjects import SUBJECTS

CASES = int(os.environ.get("FOCI_FUZZ_CASES", "200"))
SEED = int(os.environ.get("FOCI_FUZZ_SEED", "0"))


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_file_is_good_before_it_is_damaged(name: str, tmp_path: Path) -> None:
    SUBJECTS[name].make(tmp_path)
    SUBJECTS[name].read(tmp_path)


def test_every_damaged_file_is_refused_in_one_line_or_read(tmp_path: Path) -> None:
    figures = fuzz(CASES, SEED, tmp_path)
    assert figures.failures == []
    assert sum(sum(found.values()) for found in figures.outcomes.values()) == CASES
    refused = sum(found["refused"] for found in figures.outcomes.values())
    assert refused > CASES / 3  # mutations that nobody notices would test nothing


MISBEHAVING = """
import itertools, os, sys
from tests.fuzzing import worker
from tests.fuzzing.subjects import SUBJECTS, Subject
calls = itertools.count()
def read(folder):
    call = next(calls)
    if call == 1:
        raise KeyError("x")
    if call == 2:
        os.kill(os.getpid(), 11)
for name, one in SUBJECTS.items():
    SUBJECTS[name] = Subject("any", one.make, one.file, read)
worker.main(*map(int, sys.argv[3:6]), *sys.argv[6:])
"""


def test_the_harness_notices_what_escapes_and_what_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, subject in enumerate(list(SUBJECTS.values())[:4]):
        (tmp_path / "good" / str(number)).mkdir(parents=True)
        subject.make(tmp_path / "good" / str(number))
    (tmp_path / "worker.py").write_text(MISBEHAVING)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/worker.py "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path.cwd()), *sys.path]))
    monkeypatch.setattr(sys, "executable", str(python))
    figures = Figures()
    assert _run(figures, 0, 4, 0, tmp_path / "good", tmp_path / "case") == 3
    (outcomes,) = figures.outcomes.values()
    assert outcomes == {"read": 1, "escaped": 1, "ended the process": 1}
    assert len(figures.failures) == 2


def test_a_case_is_the_same_every_time() -> None:
    for name, subject in SUBJECTS.items():
        for mutate in subject.mutations[:8]:
            first, second = (mutate(b"0123456789" * 40, np.random.default_rng(3)) for _ in range(2))
            assert first == second, name
