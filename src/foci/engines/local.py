"""Worker processes on this machine, forked off one that has loaded torch."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
from collections import Counter
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import current_process
from multiprocessing.connection import Connection
from typing import Any

from foci.engines.base import RETRIES, Outcome, Task, Work, perform
from foci.errors import FociError
from foci.processes import preload, signals_held_back, warm_context


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """An engine of so many processes, each with so many threads of torch.

    If a process is lost, the pool is broken and built anew, and what was under way is done again,
    up to three times. Nobody knows whose fault it was: a task that was lost twice is tried alone,
    so that it takes no other down with it.

    The processes end with this one, however it ends: they hold one end of a pipe, and exit when the
    other end is closed. Where a machine has several GPUs, each process sees one of them.

    Raises:
        FociError: If the work cannot be sent to another process, or none can be started.
    """

    def __init__(self, work: Work, workers: int, threads: int = 1) -> None:
        try:
            # by ourselves: multiprocessing would move weights to shared memory
            self._work = pickle.dumps(work)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            what = f"cannot be sent to another process ({type(error).__name__}: {error})"
            raise FociError("workers", what, "give --workers 1") from error
        self.slots = self.ahead = workers
        self._threads, self._context = threads, warm_context()
        self._queue: list[Task] = []
        self._under_way: dict[Future[Outcome], Task] = {}
        self._lost: Counter[str] = Counter()

    def __enter__(self) -> Processes:
        preload()
        # without a lock, which a process could take with it when it is killed
        self._started = self._context.RawValue("b", 0)
        self._pool = self._new_pool()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._end(at_once=kind is not None)

    def submit(self, task: Task) -> None:
        """Queue a task."""
        self._queue.append(task)
        self._fill()

    def wait(self) -> list[Outcome]:
        """Wait until a task has ended; those of a lost process are queued again."""
        while True:
            ended = wait(self._under_way, return_when=FIRST_COMPLETED).done
            if any(isinstance(one.exception(), BrokenProcessPool) for one in ended):
                self._replace_pool()
                ended = {*self._under_way}
            outcomes = []
            for one in ended:
                task = self._under_way.pop(one)
                try:
                    outcomes.append(one.result(timeout=0))
                except (BrokenProcessPool, CancelledError, TimeoutError):
                    outcomes += self._again(task)
            self._fill()
            if outcomes:
                return outcomes

    def _replace_pool(self) -> None:
        """Build a broken pool anew, once all of its processes have ended.

        One that was started at the moment it broke is waited for by the pool, but not ended
        (Python 3.11), and a task handed in at that moment never gets a result.
        """
        self._end(at_once=True)
        self._pool = self._new_pool()

    def _end(self, *, at_once: bool) -> None:
        """End all processes; at once, they leave what is under way."""
        if at_once:
            self._ours.close()
        self._pool.shutdown(cancel_futures=True)
        self._ours.close()
        self._theirs.close()

    def _new_pool(self) -> ProcessPoolExecutor:
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        return ProcessPoolExecutor(
            self.slots, self._context, _start,
            (self._work, self._threads, self._theirs, self._started),
        )  # fmt: skip

    def _fill(self) -> None:
        """Hand tasks to the pool, but one that was lost twice only when nothing is under way."""
        suspects = [task for task in self._queue if self._lost[task.key] > 1]
        alone = any(self._lost[task.key] > 1 for task in self._under_way.values())
        if alone or (suspects and self._under_way):
            return
        for task in suspects[:1] or self._queue.copy():
            self._queue.remove(task)
            try:
                self._hand_in(task)
            except BrokenProcessPool:  # found out while it was idle
                self._replace_pool()
                self._hand_in(task)
            except (EOFError, ConnectionError):
                raise _not_started() from None

    def _hand_in(self, task: Task) -> None:
        with signals_held_back():  # this may start a process
            self._under_way[self._pool.submit(_perform, task)] = task

    def _again(self, task: Task) -> list[Outcome]:
        """Queue a lost task; where that was done often enough, the outcome that says so."""
        if not self._started.value:
            raise _not_started()
        self._lost[task.key] += 1
        if self._lost[task.key] > RETRIES:
            times = self._lost[task.key]
            why = f"its process was lost {times} times: was it killed, or out of memory?"
            return [Outcome(task.key, error=why)]
        self._queue.append(task)
        return []


def _not_started() -> FociError:
    """A process reads the main script again, which then starts processes of its own."""
    fix = "in a script, put your calls under if __name__ == '__main__':, or give workers=1"
    return FociError("a worker process", "exited during start-up", fix)


_WORK: Work | None = None
"""In a worker process: what it was sent."""


def _start(work: bytes, threads: int, parent: Connection, started: Any) -> None:
    """Set up a worker process."""
    global _WORK
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import torch

    if (gpus := torch.cuda.device_count()) > 1:
        number = int(current_process().name.rpartition("-")[2])  # processes are counted
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus))))
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[number % gpus]
    torch.set_num_threads(threads)
    _WORK = pickle.loads(work)  # noqa: S301  # our own bytes
    gc.freeze()  # nothing that was loaded will ever be garbage
    started.value = 1


def _end_with(parent: Connection) -> None:
    parent.poll(None)  # nothing is ever sent: the other end was closed
    os._exit(1)


def _perform(task: Task) -> Outcome:
    assert _WORK is not None  # noqa: S101  # of the initializer
    return perform(_WORK, task)
