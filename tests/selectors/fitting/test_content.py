"""What counts as the same, and what does not."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci.bags import Cohort
from foci.selectors.fitting.run_key import content
from tests.backbones.every import small
from tests.makers.cohorts import planted


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


def changed_weights() -> torch.nn.Module:
    model = small("abmil", "paper", 2)
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] += 1e-6
    return model


@pytest.mark.parametrize(
    ("one", "again", "other"),
    [
        (1.5, 1.5, 1.25),
        (1, 1, True),
        ("a", "a", "b"),
        (Path("a"), Path("a"), Path("b")),
        ([1, 2], [1, 2], [2, 1]),
        ([1, 2], [1, 2], (1, 2)),
        ({"k": 1}, {"k": 1}, {"k": 2}),
        ({3, 1}, {1, 3}, {1, 4}),
        (torch.ones(2), torch.ones(2), torch.tensor([1.0, 1.0000001])),
        (torch.ones(4), torch.ones(4), torch.ones(2, 2)),
        (torch.ones(2).bfloat16(), torch.ones(2).bfloat16(), torch.ones(2).half()),
        (np.arange(3.0), np.arange(3.0), np.arange(1, 4.0)),
        (small("abmil", "paper", 2), small("abmil", "paper", 2), changed_weights()),
        (functools.partial(max, 1, key=abs), functools.partial(max, 1, key=abs),
         functools.partial(max, 2, key=abs)),
        (functools.partial(max, key=abs), functools.partial(max, key=abs),
         functools.partial(max, key=len)),
        ("a".upper, "a".upper, "a".lower),
    ],
)  # fmt: skip
def test_content_is_compared_also_inside_a_function(one: Any, again: Any, other: Any) -> None:
    assert content(one) == content(again) != content(other)
    assert content(closing_over(one)) == content(closing_over(again))
    assert content(closing_over(one)) != content(closing_over(other))


def test_functions_differ_by_code_and_defaults() -> None:
    assert content(lambda x: x + 1) == content(lambda x: x + 1)
    assert content(lambda x: x + 1) != content(lambda x: x + 2)
    assert content(lambda x: x + 1) != content(lambda x: x - 1)
    assert content(lambda x: x.a) != content(lambda x: x.b)
    assert content(lambda x, y=1: x) != content(lambda x, y=2: x)
    assert content(lambda x, *, y=1: x) != content(lambda x, *, y=2: x)
    assert content(lambda x: [i + 1 for i in x]) != content(lambda x: [i + 2 for i in x])


def test_methods_differ_by_what_they_are_bound_to() -> None:
    class Judge:
        def __init__(self, least: float) -> None:
            self.least = least

        def passes(self) -> float:
            return self.least

    assert content(Judge(1).passes) == content(Judge(1).passes) != content(Judge(2).passes)


def test_a_function_may_close_over_itself() -> None:
    def count(n: int) -> int:
        return n and count(n - 1)

    assert content(count) == content(count)
    ring: list[Any] = [1]
    ring.append(ring)
    assert content(ring) == ["builtins.list", [["builtins.int", "1"], "itself"]]


def test_places_in_memory_do_not_matter() -> None:
    assert content(closing_over(object())) == content(closing_over(object()))
    assert content(iter([1])) == content(iter([2]))  # only the type is known
    objects = [np.array([object()], dtype=object) for _ in range(2)]
    assert content(objects[0]) == content(objects[1])


def test_a_cohort_is_its_slides_and_their_files(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    features, labels = tmp_path / "features", tmp_path / "labels.csv"

    def read(**options: Any) -> str:
        return str(content(Cohort.read(features, labels, cache=False, **options)))

    described = [read(), str(content(cohort.split("val"))), read(n_cap=5), read(mpp=0.5)]
    described += [read(layout="trident"), read(classes=["b", "a"])]
    assert read() == described[0] == str(content(cohort))
    os.utime(features / "s3.h5", ns=(5, 5))
    described.append(read())
    labels.write_text(labels.read_text().replace("s5,c5,b", "s5,c5,a"))
    described.append(read())
    assert len(set(described)) == len(described)
