"""Objects that exist already are out of the collector's way, and come back."""

import gc

import pytest

from foci.audits.workers import frozen_gc


def test_they_are_set_aside_and_come_back() -> None:
    assert gc.get_freeze_count() == 0
    with pytest.raises(ValueError, match="inside"), frozen_gc():
        assert gc.get_freeze_count() > 10_000
        raise ValueError("inside")
    assert gc.get_freeze_count() == 0


def test_frozen_objects_of_others_stay_frozen() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with frozen_gc():
            assert gc.get_freeze_count() == before
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()


def test_garbage_made_inside_is_collected() -> None:
    class Loop:
        alive = 0

        def __init__(self) -> None:
            self.itself = self
            Loop.alive += 1

        def __del__(self) -> None:
            Loop.alive -= 1

    with frozen_gc():
        Loop()
        gc.collect()
        assert Loop.alive == 0
