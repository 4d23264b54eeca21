"""What reaches the terminal, and what the system may do to a command: one line each."""

import io
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from foci.bags import cache
from foci.cli.terminal import logged, messages, prepared, safe
from foci.errors import LONGEST, FociError, printable
from foci.progress import showing
from tests.cli.invoke import Foci
from tests.makers import features as write

EVIL = "s\x1b[2J\x07\u202e1"
SHOWN = r"s\x1b[2J\x07\u202e1"


def features(folder: Path, n: int = 10, evil: bool = True) -> Path:
    folder.mkdir()
    for number in range(n):
        np.savez(folder / f"s{number}.npz", features=write.features(4, 6))
    if evil:
        (folder / f"{EVIL}.npz").write_bytes(b"no archive")
    return folder


def test_a_message_is_one_short_line_without_control_characters() -> None:
    error = FociError(f"a{EVIL}", "x" * 5000 + "\r\n\x1b[31m", "y\x9b2J\udc80")
    assert str(error).isprintable()
    assert error.where == f"a{SHOWN}"
    assert error.fix == r"y\x9b2J\udc80"
    assert len(error.what) <= LONGEST
    assert error.what.startswith("xxx")
    assert error.what.endswith(r"\x1b[31m")


def test_doctor_never_prints_a_name_raw(foci: Foci, tmp_path: Path) -> None:
    done = foci("doctor", features(tmp_path / "f"))
    assert done.code == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err)
    assert r"\x1b[2J" in done.out.replace("\n", "")


def test_a_skipped_slide_is_named_without_control_characters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from foci.audits.sources import announce
    from foci.bags import Cohort

    with messages():
        announce(Cohort.read(features(tmp_path / "f", 3), cache=False).readable())
    out = capsys.readouterr().out
    assert out.startswith("warning: 1 of 4 slides are skipped (25 %)")
    assert f"skipped {SHOWN}: " in out


def test_the_stream_below_every_command_escapes_all_but_colours() -> None:
    assert safe("\x1b[1;31mred\x1b[0m\n\ta") == "\x1b[1;31mred\x1b[0m\n\ta"
    assert safe("\x1b]0;title\x07\x1b[2J\r\x00") == r"\x1b]0;title\x07\x1b[2J\r\x00"
    assert printable("plain ü 漢") == "plain ü 漢"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_is_not_utf_8(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    below = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(below, encoding=encoding, newline="\n"))
    with prepared():
        typer.echo("漢 → κ")
        sys.stdout.flush()
    assert below.getvalue() == rb"\u6f22 \u2192 \u03ba" + b"\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"),
    ],
)  # fmt: skip
def test_out_of_memory(foci: Foci, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("foci.cli.app", fail)
    done = foci("doctor")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("foci: memory: is used up; free some")


def test_other_runtime_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from foci.cli import main

    def fail() -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("foci.cli.app", fail)
    with pytest.raises(RuntimeError, match="a defect"):
        main()


def test_no_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has neither HOME nor an entry in /etc/passwd."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("FOCI_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(FociError, match=r"home folder: is unknown.*set FOCI_CACHE to a folder"):
        cache.default_root()
    monkeypatch.setenv("FOCI_CACHE", "/somewhere")
    assert cache.default_root() == Path("/somewhere")


def test_the_log_gets_the_traceback(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("foci.bags.layouts.canonical", fail)
    monkeypatch.setenv("FOCI_LOG", str(tmp_path / "foci.log"))
    done = foci("doctor", features(tmp_path / "f", 1, evil=False))
    assert done.err == ""
    log = (tmp_path / "foci.log").read_text()
    assert "Traceback" in log
    assert "ZeroDivisionError: unforeseen" in log
    assert "ZeroDivisionError: unforeseen" in " ".join(done.out.split())
    assert logging.getLogger("foci").handlers[1:] == []


def test_messages_are_printed_except_in_steps_of_something_larger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = logging.getLogger("foci.tests")
    logger.info("before")
    with messages():
        logger.info("one of %d %%", 100)
        logger.warning("beware")
        logger.error("ALARM, of a kind: a sentence")
        logger.debug("a detail")
        with showing(False):
            logger.warning("of a step")
    assert capsys.readouterr() == (
        "one of 100 %\nwarning: beware\nALARM, of a kind: a sentence\n",
        "",
    )


def test_a_log_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCI_LOG", "/nowhere/at/all")
    with pytest.raises(FociError, match=r"FOCI_LOG: /nowhere/at/all cannot be written"), logged():
        pass
