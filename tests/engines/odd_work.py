"""Work that dies, fails or says something, by the name of its task; results are files."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foci.engines.base import Outcome, Task
from foci.errors import FociError


@dataclass(frozen=True)
class OddWork:
    folder: Path

    def __call__(self, task: Task) -> Outcome:
        starts = self.folder / f"{task.key}.starts"
        with starts.open("a") as file:
            file.write(f"{os.getpid()}\n")
        times = len(starts.read_text().split())
        name, _, often = task.key.partition("-")
        if name == "dies" and times <= int(often):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "refused":
            raise FociError("s01", "is refused", "look at it")
        if name == "bug":
            raise KeyError("a bug")
        if name == "fails":
            return Outcome(task.key, 1.0, "it cannot be done")
        if name == "waits":
            (self.folder / "waiting").write_text(str(os.getpid()))
            time.sleep(600)
        if name == "speaks":
            logging.getLogger("foci.odd").info("skipped %s", often)
        (self.folder / task.key).write_text(str(torch.get_num_threads()))
        return Outcome(task.key, 0.5)


def waited_for(find: Callable[[], Any], seconds: float = 120.0, every: float = 0.02) -> Any:
    """What is found at last."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(every)
    raise AssertionError("nothing happened")


def waits_for_ever(folder: Path) -> None:
    """An engine whose parent is killed while a task is under way."""
    from foci.engines.local import Processes

    with Processes(OddWork(folder), 1) as engine:
        engine.submit(Task("waits"))
        engine.wait()
