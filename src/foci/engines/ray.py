"""A Ray cluster that is running: tasks go to any node that sees the folder of results."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from foci.engines.base import RETRIES, Outcome, Task, Work, perform
from foci.errors import FociError

_SECONDS_TO_ANSWER = 10.0


class RayCluster:
    """An engine on Ray Core.

    Args:
        work: What does the tasks; every node needs the same FOCI.
        address: ``"auto"`` or ``HOST:PORT`` of the cluster.

    Raises:
        FociError: If Ray is not installed, there is no cluster at the address, or no node can ever
            give a task what it asks for.
    """

    def __init__(self, work: Work, address: str) -> None:
        self._address, self._work = address, pickle.dumps(work)
        self._under_way: dict[Any, Task] = {}
        self._lost: Counter[str] = Counter()
        self._largest = Task("")
        self._checked: set[tuple[int, float]] = set()

    def __enter__(self) -> RayCluster:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            fix = "pip install 'foci-mil[cluster]', or give --workers"
            raise FociError("Ray", "is not installed", fix) from None
        self._ray = ray
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "configure_logging": False}
        try:
            _check_reachable(self._address)
            ray.init(self._address, log_to_driver=False, **quiet)
        except (OSError, ValueError) as error:
            what = f"cannot be joined ({' '.join(str(error).split())})"
            fix = "start a cluster with ray start --head, or give --workers"
            raise FociError(f"--address {self._address}", what, fix) from None
        self._sent = ray.put(self._work)
        self._name = hashlib.sha256(self._work).hexdigest()
        self._remote = ray.remote(_perform)
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()

    @property
    def slots(self) -> int:
        """Tasks that fit on all nodes at the same time; it follows a cluster that grows."""
        nodes, task = self._nodes(), self._largest
        gpus = share_of_gpus(nodes, task.gpus)
        return max(1, sum(tasks_on(node, task.threads, gpus) for node in nodes))

    @property
    def ahead(self) -> int:
        """One task per slot in Ray's queue: a worker gets it without asking this process."""
        return self.slots

    def submit(self, task: Task) -> None:
        """Queue a task."""
        nodes = self._nodes()
        gpus = share_of_gpus(nodes, task.gpus)
        if (task.threads, gpus) not in self._checked:
            check_possible(nodes, task.threads, gpus)
            self._checked.add((task.threads, gpus))
            self._largest = max(self._largest, task, key=lambda one: (one.threads, one.gpus or 0))
        asked = self._remote.options(
            num_cpus=task.threads, num_gpus=gpus, memory=task.memory or None, max_retries=RETRIES
        )
        self._under_way[asked.remote(self._sent, self._name, task)] = task

    def wait(self) -> list[Outcome]:
        """Wait until a task has ended; one whose process was lost is queued again."""
        while True:
            ended, _ = self._ray.wait(list(self._under_way), num_returns=1)
            found = [self._outcome(one, self._under_way.pop(one)) for one in ended]
            if outcomes := [outcome for outcome in found if outcome is not None]:
                return outcomes

    def _nodes(self) -> list[dict[str, float]]:
        nodes: list[dict[str, Any]] = self._ray.nodes()  # type: ignore[no-untyped-call]
        return [dict(node["Resources"]) for node in nodes if node["Alive"]]

    def _outcome(self, reference: Any, task: Task) -> Outcome | None:
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(reference)
            return outcome
        except errors.RayTaskError as error:  # what the work raised, as in this process
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except errors.RayError as error:
            self._lost[task.key] += 1
            if self._lost[task.key] <= RETRIES and self._ray.is_initialized():
                self.submit(task)
                return None
            last = str(error).strip().splitlines()[-1]
            return Outcome(task.key, error=f"{type(error).__name__}: {last}")


_WORK: dict[str, Work] = {}
"""In a process of Ray: what it was sent last, by its hash."""


def _perform(sent: bytes, name: str, task: Task) -> Outcome:
    """Do a task in a process of Ray."""
    import torch

    torch.set_num_threads(task.threads)
    if name not in _WORK:
        _WORK.clear()
        _WORK[name] = pickle.loads(sent)  # noqa: S301  # our own bytes
    return perform(_WORK[name], task)


def share_of_gpus(nodes: Sequence[Mapping[str, float]], asked: float | None) -> float:
    """Share of a GPU per task: as asked, or a whole one where there are any.

    >>> share_of_gpus([{"CPU": 8.0, "GPU": 1.0}], None), share_of_gpus([{"CPU": 8.0}], None)
    (1.0, 0.0)
    """
    if asked is not None:
        return asked
    return 1.0 if any(node.get("GPU", 0.0) >= 1.0 for node in nodes) else 0.0


def tasks_on(node: Mapping[str, float], threads: int, gpus: float) -> int:
    """How many tasks fit on a node at the same time.

    >>> tasks_on({"CPU": 8.0, "GPU": 1.0}, threads=1, gpus=0.25)
    4
    """
    by_cpu = int(node.get("CPU", 0.0) // threads)
    return min(by_cpu, int(node.get("GPU", 0.0) / gpus + 1e-9)) if gpus else by_cpu


def check_possible(nodes: Sequence[Mapping[str, float]], threads: int, gpus: float) -> None:
    """Refuse a request that no node can ever satisfy: Ray would wait for ever.

    >>> check_possible([{"CPU": 2.0}], threads=1, gpus=0.5)
    Traceback (most recent call last):
    foci.errors.FociError: --gpus-per-cell 0.5: no node has so much of a GPU (most: 0); ...
    """
    most_cpu = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
    most_gpu = max((node.get("GPU", 0.0) for node in nodes), default=0.0)
    if most_cpu < threads:
        what = f"no node has so many CPUs (most: {most_cpu:g})"
        raise FociError(f"--threads {threads}", what, "give fewer")
    if most_gpu < gpus:
        what = f"no node has so much of a GPU (most: {most_gpu:g})"
        raise FociError(f"--gpus-per-cell {gpus:g}", what, "give less, or 0 for the CPU")
    if not any(tasks_on(node, threads, gpus) for node in nodes):
        what = f"no node has {threads} CPUs and {gpus:g} of a GPU together"
        raise FociError("--threads and --gpus-per-cell", what, "give less of one")


def _check_reachable(address: str) -> None:
    """Raise an OSError at once if nobody listens at ``HOST:PORT``: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
