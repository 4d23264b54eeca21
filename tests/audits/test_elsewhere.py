"""An audit whose shards are computed under SLURM or on Ray has the bytes of one process."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.audits.manifest import read_manifest
from foci.audits.run import RunOptions, array_job, run, run_shards
from foci.audits.sources import Sources
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from foci.progress import Sized, showing
from tests.audits.test_resume import dying, without_places
from tests.makers.audits import audit, content, model, settings
from tests.makers.cohorts import read

RANKINGS = ("native", "selector", "random")


def numbers(audit: StoredAudit) -> dict[str, Any]:
    """All bytes but those of logs; the manifest without its threads."""
    found = without_places(content(audit.folder))
    found["manifest.json"].pop("threads")  # type: ignore[attr-defined]
    return {name: own for name, own in found.items() if not name.startswith("logs/")}


def sources(files: Path) -> Sources:
    return Sources(model(), read(files))


@pytest.fixture
def job(files: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("foci.audits.run.SHARDS_PER_ELEMENT", 1)
    chosen = settings(rankings=RANKINGS)
    return array_job(sources(files), chosen, files / "out", RunOptions(), ["--out", "o"])


def test_an_array_job_and_the_audit_that_completes_it(
    files: Path, job: str, audited: StoredAudit
) -> None:
    assert "#SBATCH --array=0-2\n" in job
    assert f"#SBATCH --chdir={Path.cwd()}\n" in job
    assert 'foci audit-shard --out o --of 3 --index "$SLURM_ARRAY_TASK_ID"\n' in job
    assert "-m foci audit --out o'" in job
    manifest = read_manifest(files / "out")
    assert (manifest.status, manifest.threads) == ("running", 1)
    chosen = settings(rankings=RANKINGS)
    assert [run_shards(sources(files), chosen, files / "out", i, 3) for i in (2, 0)] == [1, 1]
    assert run_shards(sources(files), chosen, files / "out", 0, 3) == 0  # it is done
    again = array_job(sources(files), chosen, files / "out", RunOptions(), [])
    assert "#SBATCH --array=1\n" in again
    done = run(sources(files), chosen, files / "out")  # which computes the last one
    assert numbers(done) == numbers(audited)
    assert run_shards(sources(files), chosen, files / "out", 1, 3) == 0
    with pytest.raises(FociError, match="holds this audit, complete"):
        array_job(sources(files), chosen, files / "out", RunOptions(), [])


def test_shards_only_read_what_was_frozen(files: Path, job: str) -> None:
    before = (files / "out" / "manifest.json").read_bytes()
    chosen = settings(rankings=RANKINGS)
    run_shards(sources(files), chosen, files / "out", 1, 3)
    assert (files / "out" / "manifest.json").read_bytes() == before
    with pytest.raises(FociError, match=r"holds an audit with kappa = 0\.6, not 0\.7"):
        run_shards(sources(files), settings(rankings=RANKINGS, kappa=0.7), files / "out", 0, 3)
    (files / "out" / "parts" / "audited.json").unlink()
    with pytest.raises(FociError, match=r"audited\.json: is missing or was changed; write the job"):
        run_shards(sources(files), chosen, files / "out", 0, 3)


def test_there_is_no_audit(files: Path) -> None:
    with pytest.raises(FociError, match="holds no audit that was started; write the job again"):
        run_shards(sources(files), settings(rankings=RANKINGS), files / "nothing", 0, 3)


def test_a_file_system_without_locks_is_refused(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(handle: int, *, blocking: bool) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("foci.files.lock.lock_descriptor", no_locks)
    audit(files, "alone", {"rankings": ("native",)})  # one machine needs none
    chosen = settings(rankings=("native",))
    for options in (RunOptions(), RunOptions(address="auto")):
        with pytest.raises(FociError, match=r"without locks \(No locks available\); several mach"):
            if options.address is None:
                array_job(sources(files), chosen, files / "out", options, [])
            else:
                run(sources(files), chosen, files / "out", options)


class Deadly(BagStore):
    """Kills the first process but its own that reads a bag."""

    def of(self, marker: Path) -> "Deadly":
        self.marker, self.own = marker, os.getpid()
        return self

    def bag(self, slide: Slide) -> Bag:
        if os.getpid() != self.own and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().bag(slide)


def losing_a_worker(files: Path, out: str, options: RunOptions) -> StoredAudit:
    cohort, marker = read(files), files / f"{out}.killed"
    deadly = replace(cohort, store=Deadly(n_cap=cohort.store.n_cap).of(marker))
    done = run(Sources(model(), deadly), settings(rankings=RANKINGS), files / out, options)
    assert marker.exists()
    return done


def losing_the_driver(files: Path, out: str, options: RunOptions) -> None:
    with showing(dying):
        run(sources(files), settings(rankings=RANKINGS), files / out, options)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by a signal")
def test_a_worker_that_is_killed(files: Path, audited: StoredAudit) -> None:
    assert numbers(losing_a_worker(files, "out", RunOptions(workers=2))) == numbers(audited)


@pytest.mark.skipif("FOCI_SLOW" not in os.environ, reason="FOCI_SLOW=1 starts a Ray cluster")
def test_whatever_a_ray_cluster_loses(files: Path, audited: StoredAudit) -> None:
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    options, chosen = RunOptions(address=cluster.address), settings(rankings=RANKINGS)

    def removing(items: Sized[int], what: str) -> Iterator[int]:
        for number, item in enumerate(items):
            if what == "revealing slides" and number == 2:
                cluster.remove_node(nodes[0], allow_graceful=False)
            yield item

    try:
        found = [losing_a_worker(files, "worker", options)]
        context = multiprocessing.get_context("spawn")
        driver = context.Process(target=losing_the_driver, args=(files, "driver", options))
        driver.start()
        driver.join()
        assert driver.exitcode == -signal.SIGKILL
        assert read_manifest(files / "driver").status != "complete"
        found.append(run(sources(files), chosen, files / "driver", options))
        with showing(removing):
            found.append(run(sources(files), chosen, files / "node", options))
    finally:
        cluster.shutdown()
    assert [numbers(done) == numbers(audited) for done in found] == [True] * 3
