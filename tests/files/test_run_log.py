"""The log of a run: everything that was said, with times."""

import re
from pathlib import Path
from typing import Any

import pytest

from foci.audits.parts import PartialResults
from foci.files.run_log import LOG, RunLog
from tests.makers.audits import audit, content
from tests.makers.cohorts import make_files

TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 .+")


def lines(folder: Path) -> list[str]:
    found = (folder / LOG).read_text(encoding="utf-8").splitlines()
    assert all(TIMED.fullmatch(line) for line in found)
    return [line.split(" ", 1)[1] for line in found]


def test_messages_are_printed_and_logged_and_a_second_run_appends(tmp_path: Path) -> None:
    said: list[str] = []
    for n in (1, 2):
        with RunLog(tmp_path, "audit of m", said.append) as log:
            log(f"hello {n}")
            log.log("quiet")
    assert said == ["hello 1", "hello 2"]
    found = lines(tmp_path)
    assert found[0].startswith("audit of m, foci ")
    assert found[1:4] == ["hello 1", "quiet", "finished"]
    assert found[5:] == ["hello 2", "quiet", "finished"]


def test_how_a_run_ended_is_the_last_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), RunLog(tmp_path, "fit") as log:
        log("one")
        raise ValueError("no")
    assert lines(tmp_path)[-1] == "stopped: ValueError: no"
    with pytest.raises(KeyboardInterrupt), RunLog(tmp_path, "fit") as log:
        log("two")
        raise KeyboardInterrupt
    assert lines(tmp_path)[-1] == "stopped"


def test_a_run_that_says_nothing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), RunLog(tmp_path, "fit"):
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    with RunLog(tmp_path / "nowhere", "fit", said.append) as log:
        log("one")
    assert said == ["one"]


def test_a_resumed_audit_goes_on_in_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path)
    with monkeypatch.context() as patch:

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(PartialResults, "write_job", stop)
        with pytest.raises(KeyboardInterrupt):
            audit(tmp_path)
    first = lines(tmp_path / "out")
    assert first[-1] == "stopped"
    done = audit(tmp_path)
    both = lines(done.folder)
    assert both[: len(first)] == first
    assert both[len(first)].startswith("audit of model, foci ")
    assert both[len(first) + 1].endswith("out: going on with what is there")


def test_an_audit_logs_what_it_says_and_the_log_is_no_part_of_it(tmp_path: Path) -> None:
    make_files(tmp_path)
    (tmp_path / "features" / "s10.h5").write_bytes(b"cut")
    done = audit(tmp_path)
    said = lines(done.folder)
    assert said[0].startswith("audit of model, foci ")
    assert any(line.startswith("skipped s10: ") for line in said)
    assert said[-1] == "finished"
    assert LOG not in done.manifest.files
    before = content(done.folder)
    (done.folder / LOG).write_text("rubbish\n")
    again = audit(tmp_path)
    assert content(again.folder) == before
    assert (done.folder / LOG).read_text() == "rubbish\n"
