"""What Ray adds to a shard of 32 slides, on two nodes of one machine.

Both ways compute the same shards one after the other: in this process, and on the cluster with one
CPU on a single node, after it was joined. Processes of Ray idle beside, so that the ratio of wall
clock times means something on an idle machine only; ``python benchmarks/bench_ray.py [SLIDES]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch
from ray.cluster_utils import Cluster

from bench_scale import CLASSES, WIDTH, Drawn
from foci import backbones
from foci.audits.folder import PARTS
from foci.audits.jobs import ranking_jobs
from foci.audits.reveal import ShardReveal, SlideReveal
from foci.audits.run_folder import Shards
from foci.audits.settings import AuditSettings
from foci.bags import Slide
from foci.engines.base import InProcess, Task, run_tasks
from foci.engines.ray import RayCluster

SETTINGS = AuditSettings(rankings=("native", "evidence", "random"), null_maps=0)


def work(out: Path, n: int) -> ShardReveal:
    """The shards of ``n`` slides."""
    torch.manual_seed(0)
    model = backbones.create("abmil", d_in=WIDTH, n_classes=2, d=64, hidden=32)
    one = SlideReveal(model.requires_grad_(False).eval(), SETTINGS, CLASSES)
    slides = tuple(Slide(str(i), str(i), CLASSES[i % 2]) for i in range(n))
    (out / PARTS).mkdir(parents=True)
    return ShardReveal(slides, Drawn(), one, ranking_jobs(SETTINGS, {}, None), Shards(out))


def main() -> None:
    """Print one line."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 640
    torch.set_num_threads(1)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    cluster.add_node(num_cpus=1)
    try:
        with tempfile.TemporaryDirectory() as place:
            there, here = work(Path(place, "there"), n), work(Path(place, "here"), n)
            first, *tasks = [Task(str(shard), gpus=0.0) for shard in range(len(here))]
            list(run_tasks([first], InProcess(here)))
            start = time.monotonic()
            done = list(run_tasks(tasks, InProcess(here)))
            alone = time.monotonic() - start
            with RayCluster(there, cluster.address) as engine:
                list(run_tasks([first], engine))  # which loads torch and the model there
                start = time.monotonic()
                found = list(run_tasks(tasks, engine))
                remote = time.monotonic() - start
        own = sum(outcome.seconds for outcome in found)
        print(
            f"{len(tasks)} shards: {alone:.2f} s here, of which computing "
            f"{sum(outcome.seconds for outcome in done):.2f}; {remote:.2f} s on Ray, computing "
            f"{own:.2f}: Ray adds {(remote - own) / len(tasks) * 1e3:.1f} ms per shard, "
            f"{(remote - own) / remote:.1%}"
        )
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
