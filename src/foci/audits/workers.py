"""Worker processes that start at once: forked off a process that has loaded torch beforehand."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import torch

from foci.errors import FociError
from foci.processes import preload, warm_context

if TYPE_CHECKING:
    from foci.audits.reveal import Block, BlockReveal
    from foci.bags import Slide


_LOG = logging.getLogger(__name__)

BLOCKS_PER_WORKER = 2
"""A process has to import torch first; with fewer blocks for each it would not pay."""


def default_workers(n_blocks: int, device: torch.device) -> int:
    """One process per core, but no more than one for every two blocks; a GPU gets one process."""
    if device.type != "cpu":
        return 1
    return max(1, min(available_cores(), n_blocks // BLOCKS_PER_WORKER))


def threads_of(workers: int) -> int:
    """Threads of torch in each process: one where there are several, else as many as it has."""
    return 1 if workers > 1 else torch.get_num_threads()


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Starts processes, hands out blocks, and passes on what they report.

    A block goes to whichever process is free. It writes its files itself; here come only messages.
    If the parent ends, a process ends at its next message.

    Args:
        work: Computes a block.
        number: Of processes.
        threads: Of torch, in each.
    """

    def __init__(self, work: BlockReveal, number: int, threads: int) -> None:
        try:
            self.work = pickle.dumps(work)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            what = f"cannot be sent to another process ({type(error).__name__}: {error})"
            raise FociError("workers", what, "give --workers 1") from error
        self.number, self.threads = number, threads

    def run(self, blocks: Sequence[Block], spare: Callable[[], bool]) -> Iterator[Slide]:
        """Compute all blocks; yields every slide that is done, in no particular order.

        Args:
            blocks: The blocks.
            spare: Called while no process has a message; returns False if there was nothing to do.
        """
        preload()
        context = warm_context()
        processes: list[BaseProcess] = []
        ends: list[Connection] = []
        try:
            for _ in range(self.number):
                here, there = context.Pipe()
                process = context.Process(
                    target=_work, args=(self.work, blocks, there, self.threads), daemon=True
                )
                _started(process)
                there.close()
                processes.append(process)
                ends.append(here)
            yield from _served(ends, deque(range(len(blocks))), spare)
        finally:
            for started in processes:
                started.terminate()
            for started in processes:
                started.join()


def _served(ends: list[Connection], left: deque[int], spare: Callable[[], bool]) -> Iterator[Slide]:
    """Hand blocks to every process, until none is left and every one is idle.

    While there are plenty, each has one more at hand than it computes, so that none waits for us.
    What is sent is the place of a block: a long message to a busy process would make us wait.
    """
    heard, held = set[Connection](), dict.fromkeys(ends, 1)  # a process begins as if with a block
    while held:
        ready = wait(held, timeout=0)
        while not ready:
            ready = wait(held, timeout=0 if spare() else None)
        for end in [one for one in ready if isinstance(one, Connection)]:
            kind, content = _received(end, starting=end not in heard)
            heard.add(end)
            if kind == "slide":
                yield content
            elif kind == "said":
                _LOG.info(content)
            elif kind == "error":
                raise content
            else:
                held[end] -= 1
                while left and held[end] < (2 if len(left) > len(ends) else 1):
                    end.send(left.popleft())
                    held[end] += 1
                if not held[end]:
                    del held[end]


def _started(process: BaseProcess) -> None:
    try:
        process.start()
    except (EOFError, ConnectionError):
        raise _ended(starting=True) from None


def _received(end: Connection, *, starting: bool) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = end.recv()
    except (EOFError, ConnectionError):
        raise _ended(starting=starting) from None
    return message


def _ended(*, starting: bool) -> FociError:
    """What a process that is gone probably died of."""
    if starting:  # it reads the main script again, which then starts another audit
        what = "exited during start-up"
        fix = "in a script, put your calls under if __name__ == '__main__':, or give workers=1"
    else:
        what = "exited unexpectedly: was it killed, or out of memory?"
        fix = "give the same command again, with fewer --workers"
    return FociError("a worker process", what, fix)


class _ToParent(logging.Handler):
    """Sends the messages of a process to its parent, which logs them."""

    def __init__(self, end: Connection) -> None:
        super().__init__(logging.INFO)
        self._end = end

    def emit(self, record: logging.LogRecord) -> None:
        if not record.exc_info:
            self._end.send(("said", record.getMessage()))


def _work(work: bytes, blocks: Sequence[Block], end: Connection, threads: int) -> None:
    """Main function of a process: compute blocks until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    torch.set_num_threads(threads)
    # Our own bytes, as multiprocessing would make them; but it would move weights to shared memory.
    reveal: BlockReveal = pickle.loads(work)  # noqa: S301
    gc.freeze()  # nothing that was loaded will ever be garbage
    logging.getLogger("foci").addHandler(_ToParent(end))
    try:
        end.send(("free", None))
        while True:
            block = blocks[end.recv()]
            try:
                for slide in reveal(block):
                    end.send(("slide", slide))
                if reveal.drift is not None:  # the parent's copy of the model computes nothing
                    reveal.drift.check("in a worker process")
                end.send(("free", None))
            except FociError as error:
                end.send(("error", error))
            except OSError as error:
                if isinstance(error, ConnectionError):
                    raise
                end.send(("error", error))
            except Exception:
                end.send(("error", RuntimeError(traceback.format_exc())))
    except (EOFError, ConnectionError):
        return
