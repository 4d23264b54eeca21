"""Twenty cases of the kill harness: a stopped run is given again and ends with the same bytes."""

import os
import random

import pytest

from tests.kills import NEEDS_SPACE, WORK, Harness

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs a process that can be forked"
)
OPERATIONS, MOMENTS, FULL = 4, 1, 1
"""Cases per piece of work; the last operation of a training and of a fit makes it twenty."""


@pytest.fixture(scope="module", params=WORK)
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    return Harness(request.param, tmp_path_factory.mktemp("kills"))


def test_the_operations_are_those_of_atomic_writing(harness: Harness) -> None:
    found = set(harness.operations)
    assert found >= {"mkdir", "open", "write", "fsync", "chmod", "rename", "unlink"}
    names = [name for name in harness.whole if name.startswith("out/")]
    assert not [name for name in names if ".writing-" in name or ".foci-lock" in name]


def test_killed_before_an_operation(harness: Harness) -> None:
    chosen = random.Random(1).sample(range(len(harness.operations)), OPERATIONS)
    assert {n: harness.kill_before(n) for n in chosen} == dict.fromkeys(chosen)


def test_killed_before_the_state_is_removed(harness: Harness) -> None:
    """The last operation of a training and of a fit; the result is already there."""
    if harness.work == "audit":
        pytest.skip("an audit ends with its report")
    last = len(harness.operations) - 1
    assert harness.operations[last] == "unlink"
    assert harness.kill_before(last) is None


def test_killed_at_a_random_moment(harness: Harness) -> None:
    draw = random.Random(2)
    moments = [draw.uniform(0, harness.seconds) for _ in range(MOMENTS)]
    assert [harness.kill_after(moment) for moment in moments] == [None] * MOMENTS


def test_the_disk_is_full(harness: Harness) -> None:
    needs = [n for n, name in enumerate(harness.operations) if name in NEEDS_SPACE]
    chosen = random.Random(3).sample(needs, FULL)
    assert {n: harness.fill_disk_at(n) for n in chosen} == dict.fromkeys(chosen)
