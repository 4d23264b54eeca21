"""One ranking against another."""

import numpy as np

from foci.audits.analysis.per_ranking import paired, per_patient
from foci.audits.analysis.per_slide import measure
from foci.audits.analysis.views import populations
from tests.makers.curves import CLASSES, Settings, slides, table


def test_patients_are_means_of_their_slides_and_seeds() -> None:
    values = np.array([[1.0, 5.0, 7.0], [3.0, 5.0, 9.0]])
    assert per_patient(values, ["B", "A", "B"]).tolist() == [5.0, (2 + 8) / 2]


def test_a_slide_is_reached_by_a_ranking_if_every_seed_reaches_it() -> None:
    curves = table({"native": [[4, 6, None]], "selector": [[1, 2, 3], [3, None, 3]]})
    group = populations(curves, slides(["A", "B", "C"], [None] * 3), CLASSES)["prediction"]
    native, selector = (measure(curves, n, group, Settings()) for n in ("native", "selector"))
    assert paired(native, selector) == {
        "base": 4.0, "foci": 2.0, "n_both": 1, "n_base_only": 1, "n_foci_only": 1, "n_neither": 0,
    }  # fmt: skip
