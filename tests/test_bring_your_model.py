"""Factories on the command line, and plug-ins of installed packages."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foci.audits import StoredAudit
from foci.backbones.callable import from_factory, is_factory
from foci.errors import FociError
from tests.cli.invoke import Foci
from tests.makers import features as write
from tests.test_documents import ROOT, blocks

QUICK = ("--rankings", "evidence,feature-norm,random", "--random-orders", "2", "--set", "n_boot=20")
WIDTH, TILE = 4, 256


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The page's ``my_models.py`` on Python's path, and a stand-in for the slide encoder."""
    folder = tmp_path / "modules"
    folder.mkdir()
    code = next(one for one in blocks("docs/bring-your-model.md", "python") if "titan_probe" in one)
    (folder / "my_models.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    fake = ModuleType("transformers")
    auto = SimpleNamespace(from_pretrained=lambda name, trust_remote_code: Titan())
    fake.__dict__["AutoModel"] = auto
    monkeypatch.setitem(sys.modules, "transformers", fake)
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    return folder


class Titan(nn.Module):
    """The signature of TITAN, and a model that reads where its tiles are."""

    def encode_slide_from_patch_features(
        self, features: Tensor, coords: Tensor, patch_size_lv0: int
    ) -> Tensor:
        assert features.shape[:2] == coords.shape[:2]
        assert (coords.dtype, patch_size_lv0) == (torch.int64, TILE)
        left = (coords[..., :1] // patch_size_lv0 < 2).to(features.dtype)
        return (features * left).sum(dim=1) / features.shape[1]


def cohort(folder: Path) -> list[str]:
    """Slides whose first column says their class, in the two columns of tiles on the left."""
    rng = np.random.default_rng(0)
    lines = ["slide_id,patient_id,label,split"]
    for i in range(8):
        coords = np.stack(np.meshgrid(range(4), range(3)), axis=-1).reshape(-1, 2) * TILE
        x = rng.normal(size=(len(coords), WIDTH)).astype(np.float32) / 10
        x[coords[:, 0] < 2 * TILE, 0] += 9 if i % 2 else -9
        x[coords[:, 0] >= 2 * TILE, 0] += -30 if i % 2 else 30
        write.trident(folder / "features" / f"s{i}.h5", x, coords)
        lines.append(f"s{i},p{i},{'ab'[i % 2]},test")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return ["--features", "features", "--labels", "labels.csv"]


def test_the_page_from_a_factory_to_an_audit_of_a_model_with_coordinates(
    foci: Foci, modules: Path, tmp_path: Path
) -> None:
    places = cohort(tmp_path)
    weight = torch.zeros(2, WIDTH)
    weight[0, 0], weight[1, 0] = -1, 1
    torch.save({"weight": weight, "bias": torch.zeros(2)}, "probe.pt")
    torch.save(torch.eye(2, WIDTH), "prompts.pt")
    console = "\n".join(blocks("docs/bring-your-model.md", "console", "On the command line"))
    titan, prompts = re.findall(r"--model (\S+) --model-arg (\S+)", console)

    args = ("--model", titan[0], "--model-arg", titan[1], "--model-arg", f"width={WIDTH}")
    foci.done("audit", *args, *places, *QUICK[2:], "--out", "AUDIT")
    foci.done("audit", "--model", prompts[0], "--model-arg", prompts[1], "--model-arg", "best=3",
              *places, *QUICK, "--out", "AUDIT2")  # fmt: skip

    audit = StoredAudit(Path("AUDIT"))
    assert audit.manifest.name == "my_models:titan_probe"
    assert audit.curves.rankings == ("evidence", "random")
    why = "callable passes no gradient back to its tiles: no selector is fitted"
    assert why in audit.manifest.notes
    # the tiles on the right say the opposite class, and a model that lost its places would too
    assert [slide.label for slide in audit.slides] == ["a", "b"] * 4
    predicted = audit.measured().slides.predictions.tolist()
    assert predicted == [0, 1] * 4
    assert Path("AUDIT/report.html").stat().st_size > 10_000
    assert len(StoredAudit(Path("AUDIT2")).slides) == 8


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "cannot be imported (AttributeError: module 'broken' has no attribute 'make'); inst"),
        ("import nowhere_at_all", "cannot be imported (ModuleNotFoundError: No module named 'now"),
        ("def make(): return 3", "returns a int, neither a Backbone nor a function with d_in and"),
        ("def make(): return lambda x: x", "returns a function, neither a Backbone nor a functio"),
        ("def make(a): pass", "failed (TypeError: make() missing 1 required positional argument"),
    ],
)
def test_a_factory_that_does_not_work_is_refused_in_one_line(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(FociError) as error:
        from_factory("broken:make", {})
    assert str(error.value).startswith(f"model broken:make: {message}")
    assert "\n" not in str(error.value)


def test_a_function_with_its_widths_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain.py").write_text(
        "def make(scale=1.0):\n"
        "    def f(x, coords):\n        return scale * x.mean(0)[:2] + 0 * coords.sum()\n"
        "    f.d_in, f.n_classes, f.coords = 3, 2, True\n    return f\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = from_factory("plain:make", {"scale": 2.0})
    assert (model.d_in, model.n_classes, model.input_width) == (3, 2, 6)
    assert model(torch.ones(4, 6)).tolist() == [2, 2]
    assert is_factory("plain:make")
    assert not any(map(is_factory, ("C:/x", "plain", "a/b:c", "plain:", "1a:b")))


PACKAGE = """
import torch
from torch import nn
from foci.backbones import Backbone, Capabilities
from foci.backbones.models.abmil import ABMIL

class Tiny(ABMIL):
    def __init__(self, d_in, n_classes):
        super().__init__(d_in, n_classes, d=8, hidden=6)

def first_column(bag):
    return bag.features[:, 0]

def make(d_in=6):
    return Tiny(d_in, 2)
"""
ENTRIES = """
[foci.backbones]
tiny = foci_tiny:Tiny
tiny-factory = foci_tiny:make
broken = foci_tiny:nothing

[foci.rankings]
first-column = foci_tiny:first_column
feature-norm = foci_tiny:first_column
"""
SESSION = """
import json, sys, torch
from foci import backbones, rankings, testing
from foci.backbones.callable import from_factory
model = backbones.create("tiny", "official", d_in=6, n_classes=2)
testing.check_backbone(model)
x = torch.randn(5, 6)
found = rankings.score("first-column", model, x)
again = backbones.load(backbones.save(model, sys.argv[1]))
print(json.dumps({
    "first": "tiny" in backbones.available() and "first-column" in rankings.available(model),
    "scores": found.scores.tolist(), "x": x[:, 0].tolist(),
    "same": bool(torch.equal(again(x), model.eval()(x))),
    "made": type(from_factory("tiny-factory", {"d_in": 7})).__name__,
}))
"""
DOCTOR = """
from foci.cli import app
for more in (["--json"], []):
    app(["doctor", "--plugins", *more], standalone_mode=False)
    print("----")
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """A package as an installer leaves it: its module and its record, in a folder of the path."""
    folder = tmp_path / "site"
    record = folder / "foci_tiny-1.2.dist-info"
    record.mkdir(parents=True)
    (folder / "foci_tiny.py").write_text(PACKAGE)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: foci-tiny\nVersion: 1.2\n")
    (record / "entry_points.txt").write_text(ENTRIES)
    path = [str(folder), str(ROOT / "src"), *filter(None, sys.path)]
    return {"PYTHONPATH": ":".join(path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}


def python(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_is_found_by_its_entry_points(installed: dict[str, str], tmp_path: Path) -> None:
    said: dict[str, Any] = json.loads(
        python(installed, "-c", SESSION, str(tmp_path / "saved")).splitlines()[-1]
    )
    assert said.pop("scores") == pytest.approx(said.pop("x"))
    assert said == {"first": True, "same": True, "made": "Tiny"}


def test_the_doctor_lists_plug_ins_with_where_they_come_from(
    installed: dict[str, str], tmp_path: Path
) -> None:
    listed, table, _ = python(installed, "-c", DOCTOR).split("----\n")
    rows = json.loads(listed)
    own = {(row["group"], row["name"]): row for row in rows if row["package"] == "foci-tiny 1.2"}
    assert {place: row["state"].partition(" (")[0] for place, row in own.items()} == {
        ("foci.backbones", "tiny"): "loads",
        ("foci.backbones", "tiny-factory"): "loads",
        ("foci.backbones", "broken"): "cannot be loaded",
        ("foci.rankings", "first-column"): "loads",
        ("foci.rankings", "feature-norm"): "is already a registered ranking; choose another name",
    }
    assert {row["folder"] for row in own.values()} == {str(tmp_path / "site")}
    assert "foci.backbones tiny: foci_tiny:Tiny of foci-tiny 1.2 in " in table
