"""One door for FOCI's own folders and for everybody else's files."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from foci import backbones
from foci.backbones.checkpoints import inspect
from foci.errors import CheckpointError, FociError
from foci.testing import check_backbone
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL
from tests.makers.cohorts import Row, write_cohort

PAGE = Path(__file__).parents[3] / "docs" / "checkpoints.md"


def official(tmp_path: Path, name: str = "clam-sb") -> Path:
    path = tmp_path / f"{name}.pt"
    torch.save(OFFICIAL[name].state(OFFICIAL[name].model()), path)
    return path


def own(tmp_path: Path) -> Path:
    return backbones.save(OFFICIAL["clam-sb"].model(), tmp_path / "clam")


@pytest.mark.parametrize("inside", ["", "weights.safetensors", "backbone.json"])
def test_a_folder_of_foci_is_loaded_through_any_of_its_files(inside: str, tmp_path: Path) -> None:
    model, folder = OFFICIAL["clam-sb"].model(), own(tmp_path)

    loaded = backbones.load(folder / inside)

    assert loaded.config == model.config
    assert torch.equal(loaded.state_dict()["head.weight"], model.state_dict()["head.weight"])
    facts = inspect(folder / inside)
    assert (facts.path, facts.format, facts.architecture) == (folder, "FOCI", "clam-sb")
    assert (facts.config, facts.notes, facts.ignored) == (model.config, (), ())
    assert facts.parameters == sum(p.numel() for p in model.parameters())


def test_weights_safetensors_of_another_project_is_a_file_like_any_other(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "weights.safetensors"
    save_file(OFFICIAL["clam-sb"].state(OFFICIAL["clam-sb"].model()), path)
    assert inspect(path).format == "CLAM-SB"


def test_a_folder_without_a_backbone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"backbone.json: does not exist; give a folder"):
        backbones.load(tmp_path)


def test_a_folder_has_no_options(tmp_path: Path) -> None:
    folder = own(tmp_path)
    with pytest.raises(CheckpointError, match=r"clam: has no option 'heads'; backbone.json"):
        backbones.load(folder, heads=8)


@pytest.mark.parametrize("foreign", [True, False])
def test_what_is_loaded_is_frozen_and_keeps_its_claims(foreign: bool, tmp_path: Path) -> None:
    model = backbones.load(official(tmp_path) if foreign else own(tmp_path))
    assert not model.training
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(p.is_meta for p in model.parameters())
    check_backbone(model)


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    path = official(tmp_path)
    torch.manual_seed(3)
    want = torch.rand(2)
    torch.manual_seed(3)
    backbones.load(path)
    assert torch.equal(torch.rand(2), want)


def test_the_facts_of_a_file(tmp_path: Path) -> None:
    path = official(tmp_path, "clam-sb-svm")
    facts = inspect(path)
    assert facts.path == path
    assert (facts.format, facts.architecture) == ("CLAM-SB", "clam-sb")
    assert facts.config == OFFICIAL["clam-sb"].model().config
    assert facts.parameters == sum(p.numel() for p in OFFICIAL["clam-sb"].model().parameters())
    assert facts.ignored == ("instance_loss_fn.labels",)


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("clam-sb", "clam-sb"),
        ("transmil", "transmil"),
        ("transmil", "transmil-nystrom"),
        ("asmil", "asmil"),
        ("mhim-v1-gated", "mhim-mil"),
    ],
)
def test_an_expected_classifier_is_let_in(name: str, expect: str, tmp_path: Path) -> None:
    backbones.load(official(tmp_path, name), expect=expect, d_in=D_IN)


@pytest.mark.parametrize("foreign", [True, False])
def test_another_classifier_is_refused_by_its_name(foreign: bool, tmp_path: Path) -> None:
    path = official(tmp_path) if foreign else own(tmp_path)
    family = "CLAM-SB" if foreign else "FOCI"
    with pytest.raises(CheckpointError) as error:
        backbones.load(path, expect="transmil")
    assert str(error.value) == (
        f"{path}: is {family} (clam-sb) for features of width 12, not transmil; "
        "give another checkpoint"
    )


@pytest.mark.parametrize("foreign", [True, False])
def test_another_feature_width_is_refused(foreign: bool, tmp_path: Path) -> None:
    path = official(tmp_path) if foreign else own(tmp_path)
    with pytest.raises(CheckpointError, match="features of width 12, not 1536; give features of"):
        backbones.load(path, expect="clam-sb", d_in=1536)


def test_an_unknown_expectation_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"clamsb: is not a known backbone; did you mean 'clam-sb'"):
        backbones.load(official(tmp_path), expect="clamsb")


def test_the_code_on_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    state = OFFICIAL["clam-sb-svm"].state(OFFICIAL["clam-sb-svm"].model())
    torch.save(state, "s_0_checkpoint.pt")
    torch.save(OFFICIAL["transmil"].state(OFFICIAL["transmil"].model()), "transmil.ckpt")
    torch.save(OFFICIAL["clam-sb-svm"].state(OFFICIAL["clam-sb-svm"].model()), "clam.pt")
    rng = np.random.default_rng(0)
    bags = {name: rng.normal(size=(9, D_IN)).astype(np.float32) for name in ("s0", "s1", "s2")}
    write_cohort(tmp_path, [Row(n, x, n, "ab"[n == "s1"], "test") for n, x in bags.items()])
    own = backbones.load("clam.pt", projection_activation="gelu")
    answers = [own.predict(torch.from_numpy(x)).tolist() for x in bags.values()]
    lines = [",".join([name, *map(str, p)]) for name, p in zip(bags, answers, strict=True)]
    Path("expected.csv").write_text("\n".join(["slide_id,p0,p1,p2", *lines]))
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) >= 2
    assert isinstance(names["model"], backbones.Backbone)
    assert names["model"].config["projection_activation"] == "gelu"
