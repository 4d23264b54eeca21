"""Strict: nothing missing, nothing left over, every shape right, every number finite."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from foci.backbones import load
from foci.backbones.checkpoints import inspect
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import OFFICIAL

FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"


def clam() -> dict[str, Tensor]:
    return OFFICIAL["clam-sb"].state(OFFICIAL["clam-sb"].model())


def saved(tmp_path: Path, state: dict[str, Tensor]) -> Path:
    path = tmp_path / "s_0_checkpoint.pt"
    torch.save(state, path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        load(path)
    with pytest.raises(CheckpointError) as inspected:
        inspect(path)
    assert str(inspected.value) == str(error.value)
    return str(error.value)


def test_a_missing_tensor_is_named_as_the_file_would(tmp_path: Path) -> None:
    state = clam()
    del state["attention_net.3.attention_c.bias"]
    path = saved(tmp_path, state)
    assert refusal(path) == (
        f"{path}: is CLAM-SB, but lacks attention_net.3.attention_c.bias; {FIX}"
    )


def test_an_unexpected_tensor_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, {**clam(), "extra.weight": torch.zeros(1)})
    assert refusal(path) == f"{path}: is CLAM-SB, but holds also extra.weight; {FIX}"


def test_many_names_are_cut_short(tmp_path: Path) -> None:
    path = saved(tmp_path, {**clam(), **{f"extra.{i}": torch.zeros(1) for i in range(20)}})
    assert refusal(path) == (
        f"{path}: is CLAM-SB, but holds also extra.0, extra.1, extra.2, extra.3, extra.4, extra.5 "
        f"and 14 more; {FIX}"
    )


@pytest.mark.parametrize(
    ("key", "shape", "said"),
    [
        ("attention_net.3.attention_b.0.weight", (6, 9), "[6, 9], which does not fit [6, 8]"),
        ("attention_net.3.attention_c.weight", (2, 6), "[2, 6], which does not fit [1, 6]"),
        ("classifiers.bias", (4,), "[4], which does not fit [3]"),
    ],
)
def test_a_wrong_shape_is_named(
    key: str, shape: tuple[int, ...], said: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, {**clam(), key: torch.zeros(shape)})
    assert refusal(path) == f"{path}: is CLAM-SB, but {key} has shape {said}; {FIX}"


def test_a_weight_that_is_no_matrix_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, {**clam(), "attention_net.0.weight": torch.zeros(8)})
    assert refusal(path).startswith(f"{path}: attention_net.0.weight has shape [8]; ")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_must_be_finite(value: float, tmp_path: Path) -> None:
    state = clam()
    state["classifiers.bias"] = torch.tensor([0.0, value, 0.0])
    path = saved(tmp_path, state)
    assert refusal(path) == (
        f"{path}: classifiers.bias holds NaN or Inf; take an earlier checkpoint"
    )


def test_one_class_is_no_classifier(tmp_path: Path) -> None:
    state = clam()
    state["classifiers.weight"], state["classifiers.bias"] = torch.zeros(1, 8), torch.zeros(1)
    path = saved(tmp_path, state)
    assert refusal(path) == f"{path}: is CLAM-SB with 1 class; two are the least"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_float32_and_are_noted(dtype: torch.dtype, tmp_path: Path) -> None:
    state = {key: tensor.to(dtype) for key, tensor in clam().items()}
    path = saved(tmp_path, state)

    loaded = load(path).state_dict()

    name = str(dtype).removeprefix("torch.")
    notes = inspect(path, projection_activation="relu").notes
    assert notes == (f"stored as {name}, used as float32",)
    assert loaded["head.weight"].dtype == torch.float32
    assert torch.equal(loaded["head.weight"], state["classifiers.weight"].float())
