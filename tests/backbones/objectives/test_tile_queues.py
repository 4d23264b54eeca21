"""Tile queues against Python's own deque."""

from collections import deque

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.backbones.models.attrimil import TileQueues

LENGTH = 4
moves = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["append", "next"])), max_size=40)


@settings(deadline=None)
@given(moves)
def test_behaves_like_a_deque_and_never_exceeds_its_length(steps: list[tuple[int, str]]) -> None:
    queues = TileQueues(n_classes=2, length=LENGTH, d_in=1)
    reference: list[deque[float]] = [deque(maxlen=LENGTH) for _ in range(2)]
    for number, (c, move) in enumerate(steps):
        if move == "append":
            queues.append(c, torch.tensor([float(number)]))
            reference[c].append(float(number))
        elif reference[c]:
            want = reference[c].popleft()
            reference[c].append(want)
            assert queues.next(c).item() == want
        for k in range(2):
            held = queues.tiles[k, : queues.size(k), 0].tolist()
            assert held == list(reference[k])
            assert len(held) <= LENGTH


def test_a_restart_finds_the_same_tiles_in_the_same_order() -> None:
    queues = TileQueues(n_classes=1, length=2, d_in=3)
    for number in range(3):
        queues.append(0, torch.full((3,), float(number)))
    again = TileQueues(n_classes=1, length=2, d_in=3)
    again.load_state_dict(queues.state_dict())
    assert again.size(0) == 2
    assert [again.next(0)[0].item() for _ in range(2)] == [1.0, 2.0]


def test_clear_forgets_everything() -> None:
    queues = TileQueues(n_classes=2, length=2, d_in=1)
    queues.append(1, torch.ones(1))
    queues.clear()
    assert [queues.size(c) for c in range(2)] == [0, 0]
    assert queues.tiles.abs().sum() == 0


def test_queued_tiles_carry_no_gradient_and_survive_later_moves() -> None:
    queues = TileQueues(n_classes=1, length=1, d_in=1)
    queues.append(0, torch.ones(1, requires_grad=True))
    held = queues.next(0)
    queues.append(0, torch.zeros(1))
    assert not held.requires_grad
    assert held.item() == 1.0
