"""Creating a classifier by name; a mistake is answered in one line."""

import pytest
import torch

from foci import backbones
from foci.errors import FociError
from tests.backbones.every import EVERY, small


def test_widths_replace_those_of_the_preset() -> None:
    model = backbones.create("abmil", d_in=6, n_classes=3, d=10)
    assert model.config["d"] == 10
    assert model.config["hidden"] == 128
    assert (model.d_in, model.n_classes, model.d_token) == (6, 3, 10)


def test_every_name_has_presets_and_the_seven_have_a_paper_one() -> None:
    paper = {name for name in backbones.available() if "paper" in backbones.presets(name)}
    assert paper == {"abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil"}


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("abmill", {}, "abmill: is not a known backbone; did you mean 'abmil'?"),
        ("abmil", {"preset": "large"}, "abmil: has no preset 'large'; choose one of paper"),
        ("clam-mb", {}, "clam-mb: has no preset 'paper'; choose one of official"),
        ("abmil", {"depth": 3}, r"abmil \(paper\): .*depth"),
        ("abmil", {"n_classes": 1}, "n_classes: is 1; give 2 or more"),
    ],
)
def test_mistakes(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(FociError, match=says.replace("?", r"\?")):
        backbones.create(name, **{"d_in": 4, "n_classes": 2, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "preset", "d_in", "widths", "count"),
    [
        ("abmil", "paper", 1536, {}, 492_291),
        ("acmil", "paper", 1536, {}, 924_561),
        ("acmil", "official", 1536, {}, 1_386_385),
        ("acmil", "mha", 1024, {}, 6_317_580),
        ("asmil", "paper", 1536, {}, 558_212),
        # the published module also holds a normalisation (2 x 256) that it never applies
        ("asmil", "official", 1536, {"d": 256, "branches": 1}, 922_628 - 2 * 256),
        ("asmil", "official", 1536, {"d": 256, "branches": 8}, 2_773_778 - 2 * 256),
        ("attrimil", "paper", 1536, {}, 1_707_014),
        ("attrimil", "official", 1536, {}, 7_087_878),
        ("attrimil", "official", 512, {}, 789_766),
        ("attrimil", "aligned", 1536, {}, 1_576_710),
        ("clam-sb", "paper", 1536, {}, 493_319),
        ("clam-sb", "official", 1536, {}, 1_052_935),
        ("clam-sb", "official", 1024, {}, 790_791),
        ("clam-sb", "big", 1536, {}, 1_184_391),
        ("clam-mb", "official", 1536, {}, 1_049_600 + 2 * 1_796),
        ("clam-mb", "official", 1536, {"n_classes": 5}, 1_049_600 + 5 * 1_796),
        ("dsmil", "official", 512, {"negative": True}, 83_202),
        ("dsmil", "official", 512, {}, 85_252),
        ("dsmil", "official", 512, {"n_classes": 3, "negative": True}, 85_252),
        ("dsmil", "official", 512, {"n_classes": 3}, 88_326),
        ("max-mil", "official", 1024, {}, (1024 + 1) * 512 + (512 + 1) * 2),
        ("mil-fc", "official", 1024, {}, (1024 + 1) * 512 + (512 + 1) * 2),
        ("mean-mil", "official", 1024, {}, (1024 + 1) * 512 + (512 + 1) * 2),
        ("mhim-mil", "paper", 1536, {}, 1_181_187),
        ("mhim-mil", "official", 1536, {}, 919_170),
        ("mhim-mil", "official-ungated", 1536, {}, 853_634),
        ("mhim-mil", "selfattn", 1536, {}, 2_934_290),
        ("transmil", "paper", 1536, {}, 13_529_346),
        ("transmil", "paper", 1536, {"projection_bias": True}, 13_529_858),
        ("transmil", "official", 1024, {}, 2_672_146),
        ("transmil", "official", 1536, {}, 2_934_290),
    ],
)
def test_parameters_are_as_many_as_printed_or_published(
    name: str, preset: str, d_in: int, widths: dict[str, int], count: int
) -> None:
    with torch.device("meta"):
        model = backbones.create(name, preset, d_in=d_in, **{"n_classes": 2, **widths})
    assert sum(p.numel() for p in model.parameters()) == count


def test_the_anchor_of_asmil_is_counted_and_not_trained() -> None:
    model = backbones.create("asmil", d_in=1536, n_classes=2)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 492_291


def test_only_bias_free_relu_projections_are_homogeneous() -> None:
    claims = {pair for pair in EVERY if small(*pair, n_classes=2).capabilities.homogeneous}
    unprojected = {("dsmil", "official"), ("dsmil", "official-negative")}
    bias_free = {(n, "paper") for n in ("abmil", "asmil", "clam-sb", "mhim-mil", "transmil")}
    branched = {("acmil", "paper"), ("acmil", "official"), ("acmil", "mha"), ("asmil", "official")}
    assert claims == unprojected | bias_free | branched
    widths = {"d": 8, "projection_bias": False, "projection_activation": "gelu"}
    for name in ("abmil", "clam-sb", "clam-mb", "max-mil", "mean-mil", "mhim-mil"):
        preset = backbones.presets(name)[-1]
        preset = "official" if preset == "selfattn" else preset
        for activation in ("gelu", "relu"):
            widths["projection_activation"] = activation
            model = backbones.create(name, preset, d_in=8, n_classes=2, **widths)
            assert model.capabilities.homogeneous == (activation == "relu")
