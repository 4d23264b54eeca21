"""Worker processes: lost ones are replaced, their tasks done again; none outlives its parent."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import process
from pathlib import Path
from typing import Any

import pytest

from foci.engines.base import Outcome, Task, run_tasks
from foci.engines.local import Processes, available_cores
from foci.errors import FociError
from tests.engines.odd_work import OddWork, waited_for, waits_for_ever

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")


def run(folder: Path, *keys: str, workers: int = 2, threads: int = 1) -> dict[str, Outcome]:
    with Processes(OddWork(folder), workers, threads) as engine:
        return {one.key: one for one in run_tasks([Task(key) for key in keys], engine)}


def starts(folder: Path, key: str) -> list[str]:
    return (folder / f"{key}.starts").read_text().split()


def test_everything_is_done_in_other_processes(tmp_path: Path) -> None:
    keys = [str(number) for number in range(9)]
    found = run(tmp_path, *keys, "speaks-s07", "fails", threads=3)
    assert all(found[key] == Outcome(key, 0.5) for key in keys)
    assert found["speaks-s07"].messages == ("skipped s07",)
    assert found["fails"].error == "it cannot be done"
    assert {(tmp_path / key).read_text() for key in keys} == {"3"}
    pids = {pid for key in keys for pid in starts(tmp_path, key)}
    assert 1 <= len(pids) <= 2
    assert str(os.getpid()) not in pids


@needs_kill
@pytest.mark.parametrize("times", [1, 3])
def test_a_task_whose_process_is_lost_is_done_again(tmp_path: Path, times: int) -> None:
    found = run(tmp_path, "a", f"dies-{times}", "b", "c")
    assert {key: one.error for key, one in found.items()} == dict.fromkeys(found)
    assert len(starts(tmp_path, f"dies-{times}")) == times + 1
    assert sorted(found) == sorted(["a", "b", "c", f"dies-{times}"])


@needs_kill
def test_a_process_that_is_started_while_the_pool_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool does not end it, yet waits for it."""

    class Late(dict[int, Any]):
        """Processes that are there when they are waited for, but not when they are ended."""

        asked = 0

        def values(self) -> Any:
            self.asked += 1
            return [] if self.asked <= 2 else super().values()

    def break_down(manager: Any, cause: Any) -> None:
        manager.processes = Late(manager.processes)
        terminate_broken(manager, cause)

    terminate_broken = process._ExecutorManagerThread.terminate_broken
    monkeypatch.setattr(process._ExecutorManagerThread, "terminate_broken", break_down)
    found: dict[str, Outcome] = {}
    thread = threading.Thread(target=lambda: found.update(run(tmp_path, "a", "dies-1", "b", "c")))
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive(), "it waits for ever"
    assert {key: one.error for key, one in found.items()} == dict.fromkeys(
        ["a", "b", "c", "dies-1"]
    )


@needs_kill
def test_a_task_that_always_dies_fails_alone(tmp_path: Path) -> None:
    found = run(tmp_path, "a", "dies-99", "b", "c", "d")
    assert found.pop("dies-99").error == (
        "its process was lost 4 times: was it killed, or out of memory?"
    )
    assert {one.error for one in found.values()} == {None}
    assert len(starts(tmp_path, "dies-99")) == 4


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [("refused", FociError, "s01: is refused; look at it"), ("bug", KeyError, "a bug")],
)
def test_what_the_work_raises_ends_the_run(
    tmp_path: Path, key: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(tmp_path, "a", key)


def test_an_error_does_not_wait_for_what_is_under_way(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="is refused"):
        run(tmp_path, "waits", "refused")
    assert not (tmp_path / "waits").exists()
    for pid in starts(tmp_path, "waits"):
        _gone(int(pid))


@needs_kill
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = multiprocessing.get_context("spawn").Process(target=waits_for_ever, args=(tmp_path,))
    parent.start()
    waited_for((tmp_path / "waiting").exists)
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    _gone(int(starts(tmp_path, "waits")[0]))


def test_work_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(FociError, match=r"workers: cannot be sent to another process.*--workers 1"):
        Processes(lambda task: Outcome(task.key), 2)


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from pathlib import Path\n"
        "from foci.engines.base import Task\n"
        "from foci.engines.local import Processes\n"
        "with Processes(print, 1) as engine:\n"
        "    engine.submit(Task('a'))\n"
        "    engine.wait()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "a worker process: exited during start-up" in last
    assert "if __name__ == '__main__':" in last


def test_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert available_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


def _gone(pid: int) -> None:
    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    waited_for(is_gone)
