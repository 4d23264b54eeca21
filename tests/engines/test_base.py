"""Needs first, tasks that run alone last, a failure stops little; every task exactly once."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.engines.base import InProcess, Outcome, Task, run_tasks


class Pretending:
    """Does nothing; the oldest task ends first, those named fail."""

    def __init__(self, slots: int, ahead: int = 0, failing: frozenset[str] = frozenset()) -> None:
        self.slots, self.ahead, self.failing = slots, ahead, failing
        self.running: list[Task] = []
        self.together: list[list[Task]] = []
        self.started: list[str] = []

    def submit(self, task: Task) -> None:
        self.running.append(task)
        self.started.append(task.key)
        self.together.append(list(self.running))

    def wait(self) -> list[Outcome]:
        key = self.running.pop(0).key
        return [Outcome(key, error="no" if key in self.failing else None)]


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Task], frozenset[str], int, int]:
    tasks: list[Task] = []
    for number in range(draw(st.integers(0, 9))):
        before = [task.key for task in tasks if not task.alone]
        needs = draw(st.sets(st.sampled_from(before))) if before else set()
        alone = draw(st.booleans()) and draw(st.booleans())
        tasks.append(Task(str(number), tuple(sorted(needs)), alone=alone))
    failing = frozenset(draw(st.sets(st.sampled_from([task.key for task in tasks] or ["none"]))))
    return draw(st.permutations(tasks)), failing, draw(st.integers(1, 4)), draw(st.integers(0, 2))


@given(plans())
def test_every_task_ends_once_after_what_it_needs(
    plan: tuple[list[Task], frozenset[str], int, int],
) -> None:
    tasks, failing, slots, ahead = plan
    engine, ended = Pretending(slots, ahead, failing), dict[str, Outcome]()
    for outcome in run_tasks(tasks, engine):
        assert outcome.key not in ended
        ended[outcome.key] = outcome
    assert ended.keys() == {task.key for task in tasks}
    by_key = {task.key: task for task in tasks}

    def hopeless(task: Task) -> bool:
        return any(need in failing or hopeless(by_key[need]) for need in task.needs)

    for task in tasks:
        assert (ended[task.key].missing is not None) == hopeless(task)
        assert (task.key in engine.started) != hopeless(task)
        order = list(ended)
        for need in task.needs:
            if task.key in engine.started:
                assert order.index(need) < order.index(task.key)
    for beside in engine.together:
        assert len(beside) <= slots + ahead
        assert len(beside) == 1 or not any(task.alone for task in beside)
    alone = [by_key[key].alone for key in engine.started]
    assert alone == sorted(alone)


def test_what_is_done_is_not_started_and_what_is_nowhere_cannot_be() -> None:
    engine = Pretending(2)
    found = list(run_tasks([Task("b", ("a",)), Task("c", ("x",))], engine, done=["a"]))
    assert engine.started == ["b"]
    assert {one.key: one.missing for one in found} == {"b": None, "c": "x"}


def test_the_order_of_those_that_could_start() -> None:
    engine = Pretending(1)
    tasks = [Task(key) for key in "abc"]
    list(run_tasks(tasks, engine, first=lambda ready: sorted(ready, key=lambda t: t.key)[::-1]))
    assert engine.started == ["c", "b", "a"]


def test_one_at_a_time_in_this_process() -> None:
    done: list[str] = []

    def work(task: Task) -> Outcome:
        done.append(task.key)
        return Outcome(task.key)

    outcomes: Iterator[Outcome] = run_tasks([Task("a"), Task("b")], InProcess(work))
    assert next(outcomes).key == "a"
    assert done == ["a"]
    next(outcomes)
    with pytest.raises(StopIteration):
        next(outcomes)
    assert done == ["a", "b"]
