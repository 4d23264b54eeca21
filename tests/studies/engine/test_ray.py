"""On Ray, whatever is lost in the middle, a study ends with the bytes of one process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from foci.errors import FociError
from foci.studies.engine.ray_cluster import RayCluster, cells_on, check_possible, share_of_gpus
from foci.studies.engine.schedule import run_plan
from foci.studies.engine.work import Outcome
from foci.studies.plan import StudyFolder
from tests.makers.studies import make
from tests.studies.engine import lost

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install foci-mil[cluster])")

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
slow = pytest.mark.skipif(
    "FOCI_SLOW" not in os.environ, reason="takes minutes: set FOCI_SLOW=1 to run it"
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return lost.finished_here(tmp_path_factory.mktemp("reference"))


@linux
def test_a_worker_that_is_killed(reference: StudyFolder, tmp_path: Path) -> None:
    study = lost.copied(reference, tmp_path / "study")
    killed: list[int] = []
    killer = threading.Thread(target=lambda: killed.append(lost.kill_a_worker(study)))
    killer.start()
    with RayCluster(study, workers=2) as engine:
        assert engine.slots == 2
        tally = run_plan(study, study.new_plan(), engine)
    killer.join()
    assert killed
    assert (tally.done, tally.failed) == (tally.total, {})
    lost.check_equal(study, reference)


@slow
@linux
def test_a_driver_that_is_killed(reference: StudyFolder, tmp_path: Path) -> None:
    study = lost.copied(reference, tmp_path / "study")
    command = [sys.executable, "-m", "foci", "study", "run", str(study.path), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        lost.training_state(study)
        os.kill(first.pid, signal.SIGKILL)
    lost.waited_for(lambda: not lost.processes_of_ray(), 15)
    assert first.returncode == -signal.SIGKILL
    done = [cell for cell in study.plan() if study.result(cell)]
    assert len(done) < len(study.plan())
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    lost.check_equal(study, reference)


class _Reference:
    """Stands for a cell that Ray computes."""


class _LosesProcesses:
    """Ray as far as the engine needs it: every cell is lost so many times, whatever Ray retries."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

    def __init__(self, times: int) -> None:
        self.times, self.asked = times, 0

    def is_initialized(self) -> bool:
        return True

    def wait(self, references: list[object], num_returns: int) -> tuple[list[object], list[object]]:
        return references[:num_returns], []

    def get(self, reference: object) -> Outcome:
        self.asked += 1
        if self.asked <= self.times:
            raise self.exceptions.RayError("the worker died")
        return Outcome("key", 1.0)


@pytest.mark.parametrize("times", [0, 2, 3, 4])
def test_a_cell_whose_process_is_lost_is_queued_again(
    reference: StudyFolder, tmp_path: Path, times: int
) -> None:
    study = lost.copied(reference, tmp_path / "study")
    cell = study.new_plan().cells[0]
    engine, pretended = RayCluster(study, workers=1), _LosesProcesses(times)
    vars(engine)["_ray"] = pretended
    vars(engine)["submit"] = lambda cell: engine._under_way.update({_Reference(): cell})
    engine.submit(cell)
    (outcome,) = engine.wait()
    assert pretended.asked == min(times, 3) + 1
    assert (outcome.error is None) == (times <= 3)


@slow
@linux
def test_a_node_that_is_lost(reference: StudyFolder, tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    study = lost.copied(reference, tmp_path / "study")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

        def remove() -> None:
            lost.training_state(study)
            cluster.remove_node(nodes[0], allow_graceful=False)

        killer = threading.Thread(target=remove)
        with RayCluster(study, address=cluster.address) as engine:
            assert engine.slots == 2
            killer.start()
            tally = run_plan(study, study.new_plan(), engine)
            killer.join()
            assert engine.slots == 1
    finally:
        cluster.shutdown()
    assert (tally.done, tally.failed) == (tally.total, {})
    lost.check_equal(study, reference)


@slow
def test_what_no_node_can_give_is_refused(reference: StudyFolder) -> None:
    message = r"--gpus-per-cell 0.5: no node has so much of a GPU \(most: 0\); give less, or 0"
    with pytest.raises(FociError, match=message), RayCluster(reference, workers=1, gpus=0.5):
        pass


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    study = make(tmp_path, "one", seeds=[1])
    message = "--address 127.0.0.1:1: cannot be joined .*; start a cluster with ray start --head"
    with pytest.raises(FociError, match=message), RayCluster(study, address="127.0.0.1:1"):
        pass


def test_shares_of_gpus() -> None:
    assert share_of_gpus([{"CPU": 8.0, "GPU": 2.0}], None, 2) == 1.0
    assert share_of_gpus([{"CPU": 8.0, "GPU": 2.0}], None, 8) == 0.25
    assert share_of_gpus([{"CPU": 8.0, "GPU": 2.0}], None, None) == 1.0
    assert share_of_gpus([{"CPU": 8.0, "GPU": 2.0}], 0.0, None) == 0.0
    assert cells_on({"CPU": 3.0, "GPU": 1.0}, threads=1, gpus=0.1) == 3
    assert cells_on({"CPU": 8.0, "GPU": 1.0}, threads=1, gpus=0.1) == 10 - 2


def test_what_is_possible() -> None:
    check_possible([{"CPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}], threads=8, gpus=1.0)
    with pytest.raises(FociError, match=r"--threads 9: no node has so many CPUs \(most: 8\)"):
        check_possible([{"CPU": 2.0}, {"CPU": 8.0}], threads=9, gpus=0.0)
    with pytest.raises(FociError, match="no node has 4 CPUs and 1 of a GPU together"):
        check_possible([{"CPU": 8.0}, {"CPU": 2.0, "GPU": 1.0}], threads=4, gpus=1.0)
