"""Processes forked off one that has loaded torch; the collector leaves its objects alone."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import pytest

from foci.processes import frozen_gc, preload, signals_held_back


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
    code = "import sys, foci.processes; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def thawed() -> Iterator[None]:
    """Nothing is frozen, unlike in other tests."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_they_are_set_aside_and_come_back() -> None:
    assert gc.get_freeze_count() == 0
    with pytest.raises(ValueError, match="inside"), frozen_gc():
        assert gc.get_freeze_count() > 10_000
        raise ValueError("inside")
    assert gc.get_freeze_count() == 0


def test_frozen_objects_of_others_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number may fall all the same: some die."""
    assert gc.get_freeze_count() > 10_000
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(pytest.fail, f"gc.{name} was called"))
    with frozen_gc():
        pass
    assert gc.get_freeze_count() > 10_000


def test_garbage_made_inside_is_collected() -> None:
    class Loop:
        alive = 0

        def __init__(self) -> None:
            self.itself = self
            Loop.alive += 1

        def __del__(self) -> None:
            Loop.alive -= 1

    with frozen_gc():
        Loop()
        gc.collect()
        assert Loop.alive == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_answered_after_the_block(number: signal.Signals) -> None:
    done: list[str] = []
    before = signal.signal(number, lambda *_: done.append("answered"))
    try:
        with signals_held_back():
            signal.raise_signal(number)
            done.append("started")
        assert done == ["started", "answered"]
    finally:
        signal.signal(number, before)
