"""What reaches the terminal, and what the system may do to a command: one line each."""

import ast
import contextlib
import errno
import io
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import typer

import foci.cli.commands
from foci import backbones
from foci.bags.store import default_root
from foci.cli import terminal
from foci.cli.terminal import logged, messages, prepared, safe, say_next, starting, terminated
from foci.errors import LONGEST, FociError, printable
from foci.progress import showing
from tests.cli.invoke import RUNS, Foci, short_run
from tests.kill_workers import alive
from tests.makers import features as write
from tests.makers.audits import model
from tests.makers.cohorts import make_files
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

EVIL = "s\x1b[2J\x07\u202e1"
SHOWN = r"s\x1b[2J\x07\u202e1"


def features(folder: Path, n: int = 10, evil: bool = True) -> Path:
    folder.mkdir()
    for number in range(n):
        np.savez(folder / f"s{number}.npz", features=write.features(4, 6))
    if evil:
        (folder / f"{EVIL}.npz").write_bytes(b"no archive")
    return folder


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*arguments: object, **options: object) -> NoReturn:
        raise error

    return fail


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
    monkeypatch.setattr("foci.cli.app", raising(error))
    assert foci.refused("doctor").startswith("foci: memory: is used up; free some")


def test_other_runtime_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from foci.cli import main

    monkeypatch.setattr("foci.cli.app", raising(RuntimeError("a defect")))
    with pytest.raises(RuntimeError, match="a defect"):
        main()


def test_no_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has neither HOME nor an entry in /etc/passwd."""
    for name in ("FOCI_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    unknown = RuntimeError("Could not determine home directory.")
    monkeypatch.setattr(Path, "home", raising(unknown))
    with pytest.raises(FociError, match=r"home folder: is unknown.*set FOCI_CACHE to a folder"):
        default_root()
    monkeypatch.setenv("FOCI_CACHE", "/somewhere")
    assert default_root() == Path("/somewhere")


def test_the_log_gets_the_traceback(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ZeroDivisionError("unforeseen")
    monkeypatch.setattr("foci.bags.layouts.canonical", raising(error))
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


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_line_is_for_terminals(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    starting("loading the cohort")
    assert capsys.readouterr() == ("", "loading the cohort ...\n" if terminal else "")


def commands() -> list[tuple[str, ast.FunctionDef]]:
    """Every function that is a command, by the file it is in."""
    folder = Path(foci.cli.commands.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        found += [(path.stem, node) for node in own if node.name == path.stem]
    return found


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_speaks_before_it_imports(name: str, command: ast.FunctionDef) -> None:
    for node in command.body:
        call = getattr(node, "value", None)
        if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "starting":
            return
        assert not isinstance(node, ast.ImportFrom | ast.Import), f"{name} imports in silence"


def test_the_viewer_is_installed_first_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "find_spec", lambda name: object())
    say_next(["foci", "view", "audit"])
    assert capsys.readouterr().out == "next foci view audit\n"
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)
    say_next(["foci", "view", "audit"], ["foci", "report", "audit"])
    assert capsys.readouterr().out.splitlines() == [
        "next pip install 'foci-mil[viewer]'",
        "     foci view audit",
        "     foci report audit",
    ]
    say_next(["foci", "report", "audit"])
    assert capsys.readouterr().out == "next foci report audit\n"


COUNTS: Counts = {"native": [[9, 8]], "random": [[6, 6]] * 2}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "no space left on device; free some space and run the same command again"),
        (errno.EROFS, "read-only file system; check its permissions, or choose another --out"),
        (errno.EACCES, "permission denied; check its permissions, or choose another --out"),
        (errno.EIO, "input/output error; check the path, or choose another --out"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_pages(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, says: str
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"][: 1 + (command == "compare")]
    for folder in folders:
        write_folder(folder, COUNTS, ["A", "B"], ["tumour", None])
    error, page = OSError(code, "no", str(tmp_path / ".writing-abc")), tmp_path / "page.html"
    monkeypatch.setattr(tempfile, "mkstemp", raising(error))
    assert foci.refused(command, *folders, "--out", page) == f"foci: {page}: {says}\n"


@pytest.mark.parametrize("command", RUNS)
def test_folders(foci: Foci, project: Path, command: str) -> None:
    table = "labels.csv"  # a file, so that no folder can be made below it
    line = foci.refused(*short_run(command, f"{table}/below"))
    assert line.startswith(f"foci: {table}")
    assert line.endswith("choose another --out\n")


def test_an_error_without_a_number(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "a", COUNTS, ["A", "B"], ["tumour", None]).folder
    monkeypatch.setattr(tempfile, "mkstemp", raising(OSError("the tape is torn\nand more")))
    line = foci.refused("report", folder)
    assert line == "foci: a file: the tape is torn and more; try again\n"


def test_an_interrupt_is_no_error(foci: Foci, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foci.cli.app", raising(KeyboardInterrupt()))
    done = foci("doctor")
    assert (done.code, done.err) == (130, "foci: stopped\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads in /proc which signals are handled")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["options are read", "torch is loaded", "slides are computed"])
def test_a_signal_is_answered_by_one_line_with_two_workers(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    """While options are read, while torch is loaded, here and for the workers, and later."""
    files = make_files(tmp_path)
    backbones.save(model(), files / "model", classes=["a", "b"])
    command = [sys.executable, "-m", "foci", "audit", "--model", "model", "--features", "features"]
    command += ["--labels", "labels.csv", "--out", "out", "--workers", "2"]
    command += ["--rankings", "native,random", "--set", "random_orders=10000"]
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test in the background ignores it
    with subprocess.Popen(
        command, cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        signal.signal(signal.SIGINT, before)
        has_come: dict[str, Callable[[], bool]] = {
            "options are read": lambda: _handles(process.pid, signal.SIGTERM),
            "torch is loaded": lambda: "libtorch" in Path(f"/proc/{process.pid}/maps").read_text(),
            "slides are computed": (files / "out" / "parts").exists,
        }
        while not has_come[moment]():
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said.splitlines()[-1].startswith("foci: stopped")
    assert len(said.splitlines()) == 1
    end = time.monotonic() + 15
    while left := alive(process.pid):
        assert time.monotonic() < end, left
        time.sleep(0.2)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C reaches the process also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.skipif(not hasattr(signal, "pause"), reason="needs a timer that raises signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_package_swallows_is_answered(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr("foci.cli.terminal.AGAIN", 0.01)
    swallowed = []
    with pytest.raises(KeyboardInterrupt) as caught, terminated():
        for _ in range(2):
            with contextlib.suppress(BaseException):
                signal.raise_signal(number) if not swallowed else signal.pause()
            swallowed.append(number)
        signal.pause()
    assert caught.value.args == (number,)
    assert len(swallowed) == 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.usefixtures("heard")
@pytest.mark.skipif(not hasattr(signal, "pause"), reason="needs a timer that raises signals")
def test_a_signal_that_is_being_handled_is_not_raised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foci.cli.terminal.AGAIN", 0.01)
    tidied = []
    with pytest.raises(KeyboardInterrupt), terminated():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            for _ in range(3):
                signal.pause()  # until the timer
                tidied.append(True)
    assert len(tidied) == 3


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_dataclass_is_made_keeps_its_exit_code(number: signal.Signals) -> None:
    script = "from foci.cli.terminal import stop, terminated\n"
    script += "try:\n    with terminated():\n"
    script += f"        exec('import signal; signal.raise_signal({int(number)})')\n"
    script += "except KeyboardInterrupt as error:\n    stop(error)\n"
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr) == (128 + number, "foci: stopped\n")


def _handles(process: int, number: signal.Signals) -> bool:
    """Whether a process has set a handler for a signal, as FOCI does before anything else."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = int(re.search(r"^SigCgt:\t(\w+)$", status, re.MULTILINE)[1], 16)  # type: ignore[index]
    return bool(caught >> (number - 1) & 1)


def test_a_path_that_is_no_utf8_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "foci", "report", os.fsencode(tmp_path) + b"/\xff"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("is not UTF-8 text; rename the file or folder\n")
    assert done.stderr.count("\n") == 1
