"""Which ranking answers "which tiles?", chosen on validation slides alone."""

from pathlib import Path

import numpy as np
import pytest

from foci.audits import StoredAudit, selectors
from foci.audits.records import Readout, ReadoutRow
from foci.audits.selectors import choose_readout, in_words, judged
from foci.errors import FociError
from foci.rankings import Ranking
from foci.selectors.criterion import OrderReading
from tests.makers.audits import audit, model, settings
from tests.makers.cohorts import read

EVERY = {"rankings": ("native", "evidence", "selector", "random"), "recipe": "tuned", "kappa": 0.51}


@pytest.fixture
def audited(files: Path) -> StoredAudit:
    return audit(files, changes={**EVERY, "seeds": (0, 1)})


def test_the_choice_is_stored_with_its_table_and_used(audited: StoredAudit) -> None:
    made = audited.manifest.readout
    assert [row.ranking for row in made.rows] == ["evidence", "selector"]
    evidence, selector = made.rows
    assert (evidence.d, evidence.fewer, evidence.more) == (0, 0, 0)
    assert made.chosen in ("evidence", "selector")
    assert audited.manifest.settings.readout == made.chosen
    assert audited.answers.order.candidate == made.chosen
    assert in_words(made)[0] in audited.manifest.notes
    assert selector.fewer + selector.more <= made.n_slides


def test_no_audited_slide_is_read_for_it(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort, seen = read(files), []
    monkeypatch.setattr(selectors, "read_orders", lambda bag, *a, **k: seen.append(bag.slide_id)
                        or [OrderReading(1, 1, 0.1)] * 2)  # fmt: skip
    monkeypatch.setattr(
        selectors, "mean_rank", lambda rankings: Ranking("selector", "s", np.ones(99))
    )
    made = choose_readout(model(), cohort, settings(**EVERY), {})
    assert seen
    assert {next(s for s in cohort if s.slide_id == name).split for name in seen} == {"val"}
    assert made.chosen == "evidence"  # equal numbers: nothing was gained by training


EVIDENT = OrderReading(msk=2, decisive=5, area=0.3)
BETTER = OrderReading(msk=2, decisive=4, area=0.3)
WORSE = OrderReading(msk=2, decisive=6, area=0.3)
WIDER = OrderReading(msk=2, decisive=6, area=0.4)
DEEPER = OrderReading(msk=2, decisive=5, area=0.4)
DEARER = OrderReading(msk=3, decisive=4, area=0.4)


def chosen(*selector: tuple[OrderReading, int], n: int = 18, patients: int = 18) -> Readout:
    """The choice where so many slides read like this, the others as under evidence."""
    own = [reading for reading, count in selector for _ in range(count)]
    own += [EVIDENT] * (n - len(own))
    cases = [f"P{slide % patients}" for slide in range(n)]
    return judged([EVIDENT] * n, own, cases, settings())


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ([], "evidence"),  # equal numbers: nothing was gained by training
        ([(BETTER, 1)], "evidence"),  # one slide of 18 is no reason
        ([(BETTER, 9)], "selector"),
        ([(BETTER, 8), (WORSE, 8)], "evidence"),
        ([(WIDER, 9)], "evidence"),  # although its area is larger
        ([(DEEPER, 9)], "selector"),  # decisive sets are equal: the area decides
        ([(DEEPER, 2)], "evidence"),
        ([(DEARER, 12)], "evidence"),  # no decisive set pays for tiles that suffice
    ],
)
def test_the_selector_is_chosen_only_where_it_is_clearly_better(
    selector: list[tuple[OrderReading, int]], expected: str
) -> None:
    assert chosen(*selector).chosen == expected


def test_slides_of_few_patients_are_no_reason() -> None:
    """All 18 slides are better, but at least six patients have to differ."""
    assert chosen((BETTER, 18), patients=5).chosen == "evidence"
    assert chosen((BETTER, 18), patients=6).chosen == "selector"


def test_the_table_holds_the_comparisons_by_hand() -> None:
    made = chosen((BETTER, 9))
    assert (made.n_slides, made.n_cases) == (18, 18)
    assert [one.measure for one in made.comparisons] == ["decisive K", "deletion area", "MSK"]
    decisive, area, enough = made.comparisons
    assert (decisive.d, decisive.n_differ, decisive.result) == (0.5, 9, "better")
    assert decisive.low > 0
    assert (area.d, enough.d, enough.n_differ) == (0, 0, 0)
    evidence, selector = made.rows
    assert (evidence.d, evidence.fewer, evidence.more) == (0, 0, 0)
    assert (selector.fewer, selector.more, selector.decisive, selector.share) == (9, 0, 4.5, 1)
    assert (selector.d, selector.low) == (decisive.d, decisive.low)


def test_a_slide_too_small_for_an_area_is_left_out_of_it() -> None:
    tiny = OrderReading(msk=1, decisive=1, area=np.nan)
    made = judged([tiny] * 3, [tiny] * 3, ["A", "B", "C"], settings())
    assert [one.measure for one in made.comparisons] == ["decisive K", "MSK"]
    assert made.chosen == "evidence"


def test_without_validation_slides_or_by_name_nothing_is_chosen(files: Path) -> None:
    plain = audit(files, "plain", {"rankings": ("native", "evidence", "random")})
    assert plain.manifest.readout is None
    assert plain.answers.order.candidate == "evidence"
    named = audit(files, "named", {**EVERY, "readout": "selector"})
    assert named.manifest.readout is None
    assert named.answers.order.candidate == "selector"
    with pytest.raises(FociError, match="readout: 'selector' is not run; add it to the rankings"):
        settings(rankings=("native", "random"), readout="selector")


def test_the_sentence() -> None:
    assert in_words(None) == []
    rows = [
        ReadoutRow(ranking=name, decisive=4, share=1, fewer=n, more=1, d=0, low=0, high=0,
                   d_sufficiency=0, area=0.2)
        for name, n in (("evidence", 0), ("selector", 7))
    ]  # fmt: skip
    made = Readout(chosen="selector", rule="r", n_slides=9, n_cases=8, rows=rows, comparisons=[])
    (said,) = in_words(made)
    assert said == (
        "readout: selector, chosen on 9 decided validation slides of 8 patients, where the "
        "selector is clearly better than evidence; its decisive sets were smaller on 7 and "
        "larger on 1"
    )
    assert "is not clearly better" in in_words(chosen())[0]
