"""Whatever is lost in the middle of a study, it ends with the bytes of one process."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from foci.engines.base import Engine
from foci.engines.local import Processes
from foci.engines.ray import RayCluster
from foci.studies.plan import Plan, StudyFolder
from foci.studies.run import CellWork, run_plan
from tests.studies import lost

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
slow = pytest.mark.skipif(
    "FOCI_SLOW" not in os.environ, reason="takes minutes: set FOCI_SLOW=1 to run it"
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return lost.finished_here(tmp_path_factory.mktemp("reference"))


def _run(study: StudyFolder, plan: Plan, engine: Engine) -> None:
    tally = run_plan(study, plan, engine)
    assert (tally.done, tally.failed, tally.skipped) == (tally.total, {}, {})


@linux
def test_a_worker_that_is_killed(reference: StudyFolder, tmp_path: Path) -> None:
    study = lost.copied(reference, tmp_path / "study")
    plan, killed = study.new_plan(), list[int]()
    with Processes(CellWork.of(study, plan), 2) as engine:
        killer = threading.Thread(target=lambda: killed.append(lost.kill_the_writer(study)))
        killer.start()
        _run(study, plan, engine)
        killer.join()
    assert killed
    lost.check_equal(study, reference)


@slow
@linux
def test_a_parent_that_is_killed(reference: StudyFolder, tmp_path: Path) -> None:
    study = lost.copied(reference, tmp_path / "study")
    command = [sys.executable, "-m", "foci", "study", "run", str(study.path), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        lost.training_state(study)
        os.kill(first.pid, signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    assert any(study.result(cell) is None for cell in study.plan())
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    lost.check_equal(study, reference)


@slow
def test_a_node_that_is_lost(reference: StudyFolder, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (pip install foci-mil[cluster])")
    from ray.cluster_utils import Cluster

    study = lost.copied(reference, tmp_path / "study")
    plan = study.new_plan()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

        def remove() -> None:
            lost.training_state(study)
            cluster.remove_node(nodes[0], allow_graceful=False)

        killer = threading.Thread(target=remove)
        with RayCluster(CellWork.of(study, plan), cluster.address) as engine:
            assert engine.slots == 2
            killer.start()
            _run(study, plan, engine)
            killer.join()
            end = time.monotonic() + 60
            while engine.slots > 1:  # until Ray has noticed
                assert time.monotonic() < end
                time.sleep(0.2)
    finally:
        cluster.shutdown()
    lost.check_equal(study, reference)
