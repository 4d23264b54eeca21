"""Which ranking answers "which tiles?", chosen on validation slides alone."""

from pathlib import Path

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.audits.records import Readout, ReadoutRow
from foci.audits.setup import readout
from foci.audits.setup.readout import choose_readout, in_words
from foci.errors import FociError
from foci.rankings import Ranking
from foci.selectors.evidence.net_gain import OrderReading, net_gain
from tests.makers.audits import audit, model, settings
from tests.makers.cohorts import read

EVERY = {"rankings": ("native", "evidence", "selector", "random"), "recipe": "tuned", "kappa": 0.51}


@pytest.fixture
def audited(files: Path) -> StoredAudit:
    return audit(files, changes={**EVERY, "seeds": (0, 1)})


def test_the_choice_is_stored_with_its_table_and_used(audited: StoredAudit) -> None:
    made = audited.manifest.readout
    assert made is not None
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
    monkeypatch.setattr(readout, "read_orders", lambda bag, *a, **k: seen.append(bag.slide_id)
                        or [OrderReading(1, 1, 0.1)] * 2)  # fmt: skip
    monkeypatch.setattr(
        readout, "mean_rank", lambda rankings: Ranking("selector", "s", np.ones(99))
    )
    made = choose_readout(model(), cohort, settings(**EVERY), {}, lambda items, what: items)
    assert made is not None
    assert seen
    assert {next(s for s in cohort if s.slide_id == name).split for name in seen} == {"val"}
    assert made.chosen == "evidence"  # equal numbers: nothing was gained by training


@pytest.mark.parametrize("gains", [True, False])
def test_the_winner_of_the_rule_is_taken(
    gains: bool, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, selector = OrderReading(2, 5, 0.3), OrderReading(2, 4 if gains else 6, 0.4)
    monkeypatch.setattr(readout, "read_orders", lambda *a, **k: [evidence, selector])
    monkeypatch.setattr(
        readout, "mean_rank", lambda rankings: Ranking("selector", "s", np.ones(99))
    )
    made = choose_readout(model(), read(files), settings(**EVERY), {}, lambda items, what: items)
    assert made is not None
    assert made.chosen == ("selector" if gains else "evidence")
    assert (net_gain([selector], [evidence]) > net_gain([evidence], [evidence])) is gains
    row = made.rows[1]
    assert (row.fewer, row.more) == ((made.n_slides, 0) if gains else (0, made.n_slides))
    assert (row.d, row.decisive, row.share) == ((1, 4, 1) if gains else (-1, 6, 1))


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
    (said,) = in_words(Readout(chosen="selector", rule="r", n_slides=9, rows=rows))
    assert said == (
        "readout: selector, chosen on 9 decided validation slides; the selector's decisive sets "
        "were smaller than those of evidence on 7 of them and larger on 1"
    )
