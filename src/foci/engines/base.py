"""A task, how it ended, and the order in which tasks are run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

RETRIES = 3
"""How often a task is started again when its process or its machine is lost."""


@dataclass(frozen=True)
class Task:
    """A piece of work that can be done anywhere, any number of times, with the same result.

    Attributes:
        key: Names the result: where it exists, the task is done.
        needs: Keys of the tasks whose results it reads.
        threads: Of torch; another number may round sums differently.
        gpus: Share of a GPU; None for a whole one on machines that have any.
        memory: Bytes to reserve on a cluster; 0 leaves that to it.
        alone: It measures time, so that it runs last and beside no other task.
    """

    key: str
    needs: tuple[str, ...] = ()
    threads: int = 1
    gpus: float | None = None
    memory: int = 0
    alone: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        seconds: That it took, if it was done now.
        error: Why there is no result.
        missing: Key of the task that it needs and that has no result: it was not started.
        messages: What it had to say, where nobody has heard it yet.
    """

    key: str
    seconds: float = 0.0
    error: str | None = None
    missing: str | None = None
    messages: tuple[str, ...] = ()


Work = Callable[[Task], Outcome]
"""Does tasks; it is pickled to reach other processes. What it raises ends the whole run."""


class Engine(Protocol):
    """Where tasks are done."""

    @property
    def slots(self) -> int:
        """How many tasks may be under way at the same time."""

    @property
    def ahead(self) -> int:
        """How many more tasks may wait there, so that no worker waits for the next one."""

    def submit(self, task: Task) -> None:
        """Start a task."""

    def wait(self) -> list[Outcome]:
        """Wait until at least one task has ended."""


class InProcess:
    """An engine for one task at a time; nothing else is started or imported."""

    slots, ahead = 1, 0

    def __init__(self, work: Work) -> None:
        self._work = work
        self._next: list[Task] = []

    def submit(self, task: Task) -> None:
        """Remember a task until somebody waits for it."""
        self._next.append(task)

    def wait(self) -> list[Outcome]:
        """Do the task."""
        return [self._work(self._next.pop(0))]


def run_tasks(
    tasks: Iterable[Task],
    engine: Engine,
    *,
    done: Iterable[str] = (),
    first: Callable[[list[Task]], list[Task]] = lambda ready: ready,
) -> Iterator[Outcome]:
    """Run tasks in an order that their needs allow; a failed one stops only those that need it.

    Args:
        tasks: All that are to be run.
        engine: Where.
        done: Keys of tasks that have a result already.
        first: Sorts the tasks that could start now.
    """
    blocked = {task.key: task for task in tasks}
    ready: dict[str, Task] = {}
    running: dict[str, Task] = {}
    finished = set(done)
    possible = {*blocked, *finished}
    news = True
    while True:
        while news:
            news = False
            for key, task in list(blocked.items()):
                missing = next((need for need in task.needs if need not in possible), None)
                if missing is not None:
                    news = True  # others may need this one
                    del blocked[key]
                    possible.discard(key)
                    yield Outcome(key, missing=missing)
                elif finished.issuperset(task.needs):
                    ready[key] = blocked.pop(key)
        places = engine.slots + engine.ahead - len(running)
        for task in _startable(ready, blocked, running, first)[: max(places, 0)]:
            running[task.key] = ready.pop(task.key)
            engine.submit(task)
        if not running:
            return
        for outcome in engine.wait():
            del running[outcome.key]
            if outcome.error is None:
                finished.add(outcome.key)
            else:
                possible.discard(outcome.key)
            news = bool(blocked)
            yield outcome


def _startable(
    ready: Mapping[str, Task],
    blocked: Mapping[str, Task],
    running: Mapping[str, Task],
    first: Callable[[list[Task]], list[Task]],
) -> list[Task]:
    if any(task.alone for task in running.values()):
        return []
    shared = [task for task in ready.values() if not task.alone]
    if shared:
        return first(shared)
    last = not running and all(task.alone for task in blocked.values())
    return list(ready.values())[:1] if last else []


def perform(work: Work, task: Task) -> Outcome:
    """Do a task in a worker process; the outcome carries its messages to whoever waits for it."""
    heard = _Messages()
    logger = logging.getLogger("foci")
    logger.addHandler(heard)
    try:
        outcome = work(task)
    finally:
        logger.removeHandler(heard)
    return replace(outcome, messages=tuple(heard.messages))


class _Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.exc_info:
            self.messages.append(record.getMessage())
