"""Processes that are forked off one that has loaded torch."""

import multiprocessing
import os
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest

from foci.audits.workers import preload


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_processes_are_forked_off_one_that_has_loaded_torch() -> None:
    preload()
    preload()  # the second time there is nothing to do
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    context = multiprocessing.get_context("forkserver")
    answers = context.SimpleQueue()
    process = context.Process(target=_say_parent, args=(answers,))
    process.start()
    assert answers.get() == server
    process.join()
    assert process.exitcode == 0
    assert "libtorch" in Path(f"/proc/{server}/maps").read_text()


def _say_parent(answers: "multiprocessing.SimpleQueue[int]") -> None:
    answers.put(os.getppid())


def test_torch_is_not_loaded_here() -> None:
    code = "import sys, foci.audits.workers; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
