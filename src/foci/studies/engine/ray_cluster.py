"""Compute cells on Ray: embedded on this machine, or on a cluster that is running."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foci.errors import FociError
from foci.studies.engine.work import Outcome, run_cell
from foci.studies.plan import Cell, StudyFolder

RETRIES = 3
"""How often a cell is started again when its process or its machine is lost."""

_STORE_BYTES = 100 * 1024**2
"""Ray's object store: cells pass names of folders, no data."""

_SECONDS_TO_ANSWER = 10.0


class RayCluster:
    """An engine on Ray Core; cells go to any node that sees the study's folder.

    Args:
        folder: The study.
        workers: Cells at the same time in an embedded Ray; None to join ``address``.
        address: ``"auto"`` or ``HOST:PORT`` of a cluster.
        threads: Of torch, in every cell: the CPUs that it asks for.
        gpus: Share of a GPU per cell; None shares those that there are.

    Raises:
        FociError: If Ray is not installed, there is no cluster at the address, or no node can ever
            give a cell what it asks for.
    """

    def __init__(
        self,
        folder: StudyFolder,
        *,
        workers: int | None = None,
        address: str | None = None,
        threads: int = 1,
        gpus: float | None = None,
    ) -> None:
        self._folder, self._threads = folder, threads
        self._workers, self._address, self._asked = workers, address, gpus
        self._under_way: dict[Any, Cell] = {}
        self._lost: Counter[str] = Counter()
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RayCluster:
        self._ray = _ray()
        self._start()
        try:
            nodes = [dict(node["Resources"]) for node in self._ray.nodes() if node["Alive"]]
            self._gpus = share_of_gpus(nodes, self._asked, self._workers)
            check_possible(nodes, self._threads, self._gpus)
        except BaseException:
            self._ray.shutdown()
            raise
        self._task = self._ray.remote(
            num_cpus=self._threads, num_gpus=self._gpus, max_retries=RETRIES
        )(_task)
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()
        if self._guard is not None:
            self._guard.communicate()

    @property
    def slots(self) -> int:
        """Cells that fit on all nodes at the same time; it follows a cluster that grows."""
        if self._workers is not None:
            return self._workers
        nodes = (node["Resources"] for node in self._ray.nodes() if node["Alive"])
        return max(1, sum(cells_on(node, self._threads, self._gpus) for node in nodes))

    @property
    def ahead(self) -> int:
        """One cell per slot in Ray's queue: a worker gets it without asking this process."""
        return self.slots

    def submit(self, cell: Cell) -> None:
        """Queue a cell."""
        path = str(self._folder.path.resolve())
        self._under_way[self._task.remote(path, cell, self._threads)] = cell

    def wait(self) -> list[Outcome]:
        """Wait until a cell has ended; one whose process was lost is queued again."""
        while True:
            ended, _ = self._ray.wait(list(self._under_way), num_returns=1)
            found = [self._outcome(one, self._under_way.pop(one)) for one in ended]
            if outcomes := [outcome for outcome in found if outcome is not None]:
                return outcomes

    def _outcome(self, reference: Any, cell: Cell) -> Outcome | None:
        try:
            outcome: Outcome = self._ray.get(reference)
            return outcome
        except self._ray.exceptions.RayError as error:
            self._lost[cell.key] += 1
            if self._lost[cell.key] <= RETRIES and self._ray.is_initialized():
                self.submit(cell)
                return None
            last = str(error).strip().splitlines()[-1]
            line = f"{type(error).__name__}: {last}"
            self._folder.write_record(cell, error=line)
            return Outcome(cell.key, error=line)

    def _start(self) -> None:
        quiet = {"include_dashboard": False, "log_to_driver": False}
        common: dict[str, Any] = {"logging_level": logging.ERROR, "configure_logging": False}
        if self._workers is not None:
            self._ray.init(
                "local", num_cpus=self._workers * self._threads,
                object_store_memory=_STORE_BYTES, **quiet, **common,
            )  # fmt: skip
            _hide_token()
            self._guard = _guard(self._ray.get_runtime_context().get_session_name())
            return
        try:
            _check_reachable(self._address or "auto")
            self._ray.init(self._address, log_to_driver=False, **common)
        except (OSError, ValueError) as error:
            message = " ".join(str(error).split())
            what = f"cannot be joined ({message})"
            fix = "start a cluster with ray start --head, or give --workers"
            raise FociError(f"--address {self._address}", what, fix) from None


_GUARD = """
import os, signal, sys, time
sys.stdin.read()
for _ in range(2):
    time.sleep(1)
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if int(pid) != os.getpid() and sys.argv[1].encode() in file.read():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
"""


def _guard(session: str) -> subprocess.Popen[bytes] | None:
    """A process that ends what Ray has started for a session as soon as this process is gone.

    Ray's agents outlive a driver that is killed. The name of the session stands in the command line
    of each of them; standard input ends with this process, however it ends.
    """
    if not Path("/proc/self/cmdline").exists():
        return None
    return subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", _GUARD, session], stdin=subprocess.PIPE, start_new_session=True
    )


def _task(path: str, cell: Cell, threads: int) -> Outcome:
    """Run one cell in a process of Ray."""
    return run_cell(StudyFolder(path), cell, threads=threads)


def share_of_gpus(nodes: list[dict[str, float]], asked: float | None, workers: int | None) -> float:
    """Share of a GPU per cell: as asked, or all GPUs shared by the workers.

    >>> share_of_gpus([{"CPU": 8.0, "GPU": 1.0}], None, 4), share_of_gpus([{"CPU": 8.0}], None, 4)
    (0.25, 0.0)
    """
    if asked is not None:
        return asked
    gpus = sum(node.get("GPU", 0.0) for node in nodes)
    if not gpus:
        return 0.0
    return 1.0 if workers is None or gpus >= workers else gpus / workers


def cells_on(node: Mapping[str, float], threads: int, gpus: float) -> int:
    """How many cells fit on a node at the same time.

    >>> cells_on({"CPU": 8.0, "GPU": 1.0}, threads=1, gpus=0.25)
    4
    """
    by_cpu = int(node.get("CPU", 0.0) // threads)
    return min(by_cpu, int(node.get("GPU", 0.0) / gpus + 1e-9)) if gpus else by_cpu


def check_possible(nodes: list[dict[str, float]], threads: int, gpus: float) -> None:
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
    if not any(cells_on(node, threads, gpus) for node in nodes):
        what = f"no node has {threads} CPUs and {gpus:g} of a GPU together"
        raise FociError("--threads and --gpus-per-cell", what, "give less of one")


def _ray() -> Any:
    """Ray, without its usage reports, and with workers at the priority of this process."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError:
        fix = "pip install 'foci-mil[cluster]', or give --workers 1"
        raise FociError("Ray", "is not installed", fix) from None
    return ray


def _check_reachable(address: str) -> None:
    """Raise an OSError at once if nobody listens at ``HOST:PORT``: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()


def _hide_token() -> None:
    """Let nobody else on this machine read the token of the user's Ray."""
    token = Path.home() / ".ray" / "auth_token"
    with contextlib.suppress(OSError):
        if stat.S_IMODE(token.stat().st_mode) & 0o077:
            token.chmod(0o600)
