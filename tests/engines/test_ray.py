"""Ray without a cluster: what no node can give, lost processes, an address where nobody is."""

from pathlib import Path

import pytest

from foci.engines.base import Outcome, Task
from foci.engines.ray import RayCluster, check_possible, share_of_gpus, tasks_on
from foci.errors import FociError
from tests.engines.odd_work import OddWork

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install foci-mil[cluster])")


class _Reference:
    """Stands for a task that Ray has."""


class _LosesProcesses:
    """Ray as far as the engine needs it: a task is lost so many times, whatever Ray retries."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            cause = FociError("s01", "is refused", "look at it")

    def __init__(self, times: int, raises: bool = False) -> None:
        self.times, self.raises, self.asked = times, raises, 0

    def is_initialized(self) -> bool:
        return True

    def wait(self, references: list[object], num_returns: int) -> tuple[list[object], list[object]]:
        return references[:num_returns], []

    def get(self, reference: object) -> Outcome:
        self.asked += 1
        if self.raises:
            raise self.exceptions.RayTaskError
        if self.asked <= self.times:
            raise self.exceptions.RayError("(raylet) long story\nthe worker died")
        return Outcome("key", 1.0)


def _pretending(folder: Path, pretended: _LosesProcesses) -> RayCluster:
    engine = RayCluster(OddWork(folder), "auto")
    vars(engine)["_ray"] = pretended
    vars(engine)["submit"] = lambda task: engine._under_way.update({_Reference(): task})
    engine.submit(Task("key"))
    return engine


@pytest.mark.parametrize("times", [0, 2, 3, 4])
def test_a_task_whose_process_is_lost_is_queued_again(tmp_path: Path, times: int) -> None:
    pretended = _LosesProcesses(times)
    (outcome,) = _pretending(tmp_path, pretended).wait()
    assert pretended.asked == min(times, 3) + 1
    assert outcome.error == (None if times <= 3 else "RayError: the worker died")


def test_what_the_work_raises_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="s01: is refused; look at it"):
        _pretending(tmp_path, _LosesProcesses(0, raises=True)).wait()


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    message = "--address 127.0.0.1:1: cannot be joined .*; start a cluster with ray start --head"
    with pytest.raises(FociError, match=message), RayCluster(OddWork(tmp_path), "127.0.0.1:1"):
        pass


def test_shares_of_gpus() -> None:
    assert share_of_gpus([{"CPU": 8.0}, {"CPU": 8.0, "GPU": 2.0}], None) == 1.0
    assert share_of_gpus([{"CPU": 8.0, "GPU": 2.0}], 0.0) == 0.0
    assert tasks_on({"CPU": 3.0, "GPU": 1.0}, threads=1, gpus=0.1) == 3
    assert tasks_on({"CPU": 8.0, "GPU": 1.0}, threads=1, gpus=0.1) == 10 - 2


def test_what_is_possible() -> None:
    check_possible([{"CPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}], threads=8, gpus=1.0)
    with pytest.raises(FociError, match=r"--threads 9: no node has so many CPUs \(most: 8\)"):
        check_possible([{"CPU": 2.0}, {"CPU": 8.0}], threads=9, gpus=0.0)
    with pytest.raises(FociError, match=r"--gpus-per-cell 0.5: no node has so much .* or 0 for"):
        check_possible([{"CPU": 2.0}], threads=1, gpus=0.5)
    with pytest.raises(FociError, match="no node has 4 CPUs and 1 of a GPU together"):
        check_possible([{"CPU": 8.0}, {"CPU": 2.0, "GPU": 1.0}], threads=4, gpus=1.0)
