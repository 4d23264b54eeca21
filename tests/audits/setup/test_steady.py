"""The model must give the same output twice for the same bag."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from foci.audits.prepare import check_deterministic
from foci.audits.run import run
from foci.audits.sources import Sources
from foci.backbones import CallableBackbone
from foci.errors import FociError
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read


def hidden(module: nn.Module) -> CallableBackbone:
    """Hide a module in a function, where eval mode from outside does not reach it."""
    return CallableBackbone(lambda x: module(x).mean(0), D_IN, 2)


def with_dropout() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(D_IN, 2))


def test_a_function_with_dropout_is_refused_before_anything_is_written(files: Path) -> None:
    says = r"callable: the model gives two answers to one bag: on s00 .* differ by 0\..*eval mode"
    module = with_dropout().requires_grad_(False)
    chosen = settings(rankings=("random",))
    with pytest.raises(FociError, match=says) as refused:
        run(Sources(hidden(module), read(files)), chosen, files / "out")
    assert "\n" not in str(refused.value)
    assert not (files / "out").exists()
    module.eval()
    found = run(Sources(hidden(module), read(files)), chosen, files / "out")
    assert len(found.slides) == 5


def test_a_module_in_training_mode_is_put_into_eval_mode_by_the_audit(files: Path) -> None:
    check_deterministic(model().train(), read(files))


@pytest.mark.parametrize(("step", "steady"), [(1e-6, True), (1e-2, False)])
def test_rounding_is_no_second_answer(files: Path, step: float, steady: bool) -> None:
    calls = [0]

    def drifting(x: Tensor) -> Tensor:
        calls[0] += 1
        return x.mean(0)[:2] + torch.tensor([0.0, step * calls[0]])

    backbone = CallableBackbone(drifting, D_IN, 2)
    if steady:
        check_deterministic(backbone, read(files))
        assert calls == [2]  # one bag, twice
    else:
        with pytest.raises(FociError, match="two answers"):
            check_deterministic(backbone, read(files))


def test_slides_that_cannot_be_read_are_passed_over(files: Path) -> None:
    for name in ("s00", "s01"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    with pytest.raises(FociError, match="on s02 its probabilities"):
        check_deterministic(hidden(with_dropout()), read(files))


def test_no_readable_slide_leaves_nothing_to_ask(files: Path) -> None:
    for path in (files / "features").iterdir():
        path.write_bytes(b"cut")
    assert check_deterministic(model(), read(files)) is None
