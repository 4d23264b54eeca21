"""How many processes, how many threads in each, and what cannot be sent to one."""

import os
import subprocess
import sys
from collections import deque
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from foci.audits import reveal
from foci.audits.reveal import available_cores, default_workers, threads_of
from foci.errors import FociError

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("n_blocks", "cores", "expected"),
    [(0, 8, 1), (1, 8, 1), (3, 8, 1), (4, 8, 2), (7, 8, 3), (100, 8, 8), (100, 1, 1)],
)
def test_a_process_for_every_two_blocks(
    n_blocks: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reveal, "available_cores", lambda: cores)
    assert default_workers(n_blocks, CPU) == expected
    assert default_workers(n_blocks, GPU) == 1


def test_several_processes_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    assert [threads_of(n) for n in (1, 2, 8)] == [6, 1, 1]


def test_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert available_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


@pytest.mark.parametrize(("n_blocks", "ahead"), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (9, 5)])
def test_one_block_more_than_each_computes_while_there_are_plenty(
    n_blocks: int, ahead: int
) -> None:
    """Two processes that compute in turns: who has how much, and every block exactly once."""
    pairs = [Pipe() for _ in range(2)]
    handed: list[int] = []
    waiting = 0  # times that a process found its next block there already
    for _, there in pairs:
        there.send(("free", None))

    def turn() -> bool:
        nonlocal waiting
        for _, there in pairs:
            if there.poll():
                handed.append(there.recv())
                waiting += there.poll()
                there.send(("slide", handed[-1]))
                there.send(("free", None))
        return True

    left = deque(range(n_blocks))
    seen = list(reveal._served(dict.fromkeys(here for here, _ in pairs), left, turn))
    assert sorted(seen) == sorted(handed) == list(range(n_blocks))
    assert waiting == ahead
    assert not left
    for here, there in pairs:
        here.close()
        there.close()


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from foci.audits.reveal import in_processes\n"
        "list(in_processes('work', ['block'], 1, 1, lambda: False))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "a worker process: exited during start-up" in last
    assert "if __name__ == '__main__':" in last


@pytest.mark.parametrize(
    ("code", "says"),
    [(-9, "exited unexpectedly: was it killed"), (1, "exited during start-up; in a script, put")],
)
def test_a_process_that_is_killed_at_its_start_is_no_fault_of_a_script(
    code: int, says: str
) -> None:
    here, there = Pipe()
    there.close()
    ended = SimpleNamespace(exitcode=code, join=lambda seconds: None)
    with pytest.raises(FociError, match=f"a worker process: {says}"):
        list(reveal._served({here: ended}, deque([0]), lambda: False))
