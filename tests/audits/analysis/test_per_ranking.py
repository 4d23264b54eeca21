"""One ranking against another."""

import numpy as np

from foci.audits.analysis.per_ranking import per_patient
from tests.audits.cohorts import summary_of


def test_patients_are_means_of_their_slides_and_seeds() -> None:
    values = np.array([[1.0, 5.0, 7.0], [3.0, 5.0, 9.0]])
    assert per_patient(values, ["B", "A", "B"]).tolist() == [5.0, (2 + 8) / 2]


def test_a_slide_is_reached_by_a_ranking_if_every_seed_reaches_it() -> None:
    counts = {"native": [[4, 6, None]], "selector": [[1, 2, 3], [3, None, 3]]}
    view = summary_of(counts, ["A", "B", "C"], [None] * 3).views["prediction"]
    paired = view["selector"].paired
    assert paired is not None
    assert paired.model_dump() == {
        "base": 4.0, "foci": 2.0, "n_both": 1, "n_base_only": 1, "n_foci_only": 1, "n_neither": 0,
    }  # fmt: skip
