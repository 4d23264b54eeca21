"""How many processes, and how many threads in each."""

import pytest
import torch

from foci.audits import reveal
from foci.audits.reveal import default_workers, threads_of

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("n_shards", "cores", "expected"),
    [(0, 8, 1), (1, 8, 1), (3, 8, 1), (4, 8, 2), (7, 8, 3), (100, 8, 8), (100, 1, 1)],
)
def test_a_process_for_every_two_shards(
    n_shards: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reveal, "available_cores", lambda: cores)
    assert default_workers(n_shards, CPU) == expected
    assert default_workers(n_shards, GPU) == 1


def test_several_processes_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    assert [threads_of(n) for n in (1, 2, 8)] == [6, 1, 1]
