import pytest

from foci.audits.setup.preflight import admit
from foci.backbones import Backbone, CallableBackbone
from foci.bags import Cohort, Slide
from foci.errors import FociError
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN

LABELLED = Cohort((Slide("a", "p", "x"), Slide("b", "q", "y")), ("x", "y"))
BLANK = Cohort((Slide("a", "p"),))


def function(differentiable: bool = True) -> Backbone:
    return CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, differentiable=differentiable)


def test_native_is_left_out_where_there_is_none_and_nobody_asked() -> None:
    _, chosen, notes = admit(function(), LABELLED, settings())
    assert chosen.rankings == ("selector", "random")
    assert notes == ("callable has no tile score of its own: there is no native ranking",)
    _, chosen, notes = admit(model(), LABELLED, settings())
    assert (chosen.rankings, notes) == (("native", "selector", "random"), ())


@pytest.mark.parametrize(
    ("ranking", "says"),
    [
        ("native", "ranking 'native': callable has no tile score of its own; rankings that work"),
        ("attention-x-evidence", "is not a pooling classifier"),
    ],
)
def test_what_is_asked_for_and_impossible_is_refused(ranking: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        admit(function(), LABELLED, settings(rankings=(ranking,)))


def test_a_selector_needs_gradients() -> None:
    with pytest.raises(FociError, match="no selector can be fitted"):
        admit(function(differentiable=False), LABELLED, settings())


def test_labels_are_optional_but_not_as_a_target() -> None:
    cohort, _, _ = admit(model(), BLANK, settings())
    assert cohort.classes == ("class 0", "class 1")
    with pytest.raises(FociError, match="target: cannot be the label: the cohort has none; give"):
        admit(model(), BLANK, settings(target="label"))


def test_classes_have_to_match() -> None:
    with pytest.raises(FociError, match=r"labels: have 2 classes \(x, y\), the model has 3; give"):
        admit(model(n_classes=3), LABELLED, settings())
