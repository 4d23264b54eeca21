"""The log of a run: its messages, with times."""

import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from foci.audits.run_folder import Shards
from foci.files.run_log import LOG, RunLog
from tests.makers.audits import audit, content
from tests.makers.cohorts import make_files

LOGGER = logging.getLogger("foci.tests")
TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 .+")


def lines(folder: Path) -> list[str]:
    found = (folder / LOG).read_text(encoding="utf-8").splitlines()
    assert all(TIMED.fullmatch(line) for line in found)
    return [line.split(" ", 1)[1] for line in found]


def test_messages_are_logged_and_a_second_run_appends(tmp_path: Path) -> None:
    for n in (1, 2):
        with RunLog(tmp_path, "audit of m"):
            LOGGER.info("hello %d", n)
            LOGGER.warning("beware")
            LOGGER.debug("a detail")
    LOGGER.info("outside")
    found = lines(tmp_path)
    assert found[0].startswith("audit of m, foci ")
    assert found[1:4] == ["hello 1", "warning: beware", "finished"]
    assert found[5:] == ["hello 2", "warning: beware", "finished"]


def test_messages_of_another_run_and_tracebacks_are_not_logged(tmp_path: Path) -> None:
    with RunLog(tmp_path, "audit of m"):
        other = threading.Thread(target=LOGGER.info, args=["of another thread"])
        other.start()
        other.join()
        try:
            raise ValueError("unforeseen")
        except ValueError:
            LOGGER.exception("cannot be read")
        LOGGER.info("mine")
    assert lines(tmp_path)[1:] == ["mine", "finished"]


def test_a_log_that_is_held_writes_nothing_before_it_begins(tmp_path: Path) -> None:
    with RunLog(tmp_path, "audit of m", held=True) as log:
        LOGGER.info("early")
        assert list(tmp_path.iterdir()) == []
        log.begin()
        assert lines(tmp_path)[1:] == ["early"]


def test_how_a_run_ended_is_the_last_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), RunLog(tmp_path, "fit"):
        LOGGER.info("one")
        raise ValueError("no")
    assert lines(tmp_path)[-1] == "stopped: ValueError: no"
    with pytest.raises(KeyboardInterrupt), RunLog(tmp_path, "fit"):
        LOGGER.info("two")
        raise KeyboardInterrupt
    assert lines(tmp_path)[-1] == "stopped"


def test_a_run_that_says_nothing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), RunLog(tmp_path, "fit"):
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    with RunLog(tmp_path / "nowhere", "fit"):
        LOGGER.info("one")
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_audit_goes_on_in_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path)
    with monkeypatch.context() as patch:

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(Shards, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            audit(tmp_path)
    first = lines(tmp_path / "out")
    assert first[-1] == "stopped"
    done = audit(tmp_path)
    both = lines(done.folder)
    assert both[: len(first)] == first
    assert both[len(first)].startswith("audit of model, foci ")
    assert any(line.endswith("out: resuming with what is there") for line in both[len(first) :])


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
