"""Peak memory of a call, against what it allocates."""

import math
import sys

import pytest
import torch

from foci.studies import cells
from foci.studies.cells import peak_mb


def _pieces() -> list[torch.Tensor]:
    """50 MB in pieces that are too small for the kernel to hand out one by one."""
    return [torch.ones(25_000) for _ in range(500)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a process uses")
def test_memory_that_was_freed_before_counts_again() -> None:
    before = _pieces()
    del before
    for _ in range(2):
        assert 40 < peak_mb(_pieces) < 80
    assert peak_mb(lambda: None) < 5


def test_where_it_cannot_be_read_the_call_still_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    called: list[int] = []
    monkeypatch.setattr(cells, "_REFS", cells.Path(f"{tmp_path}/none/clear_refs"))
    assert math.isnan(peak_mb(lambda: called.append(1)))
    assert called == [1]
