"""Nothing that a pickle names is imported, called or changed."""

import builtins
import contextlib
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from foci.backbones import load
from foci.backbones.checkpoints import unpickle
from foci.backbones.checkpoints.unpickle import InertUnpickler, Storage, StoredTensor, Stub
from tests.backbones.checkpoints.official_files import OFFICIAL


class Call:
    """Pickles as a call of ``function``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call

    def __call__(self) -> None:
        """Only so that one call may stand where another expects a function."""


class CallWithState(Call):
    """The same, followed by a state that is set on the result."""

    def __init__(self, state: Any, function: Any, *arguments: Any) -> None:
        self.call = function, arguments, state  # type: ignore[assignment]


def attacks(marker: Path) -> dict[str, Any]:
    """Each would create ``marker`` if it were executed."""
    touch = f"open({str(marker)!r}, 'w').close()"
    nested = io.BytesIO()
    torch.save(Call(os.system, f"touch {marker}"), nested)
    return {
        "os.system": Call(os.system, f"touch {marker}"),
        "subprocess": Call(subprocess.check_call, ["touch", str(marker)]),
        "eval": Call(eval, touch),
        "exec": Call(exec, touch),
        "getattr": Call(Call(getattr, Call(__import__, "os"), "system"), f"touch {marker}"),
        "open": Call(builtins.open, str(marker), "w"),
        "compile": Call(exec, Call(compile, touch, "name", "exec")),
        "map": Call(list, Call(map, os.system, [f"touch {marker}"])),
        "Path.touch": Call(Path.touch, marker),
        "nested torch.load": Call(torch.storage._load_from_bytes, nested.getvalue()),
        "inside an allowed call": Call(
            torch._utils._rebuild_parameter, Call(os.system, f"touch {marker}"), False, {}
        ),
        "as a state": CallWithState(Call(eval, touch), dict),
    }


NAMES = sorted(attacks(Path("marker")))


def dumped(content: Any) -> bytes:
    return pickle.dumps(content, protocol=2)


def inert(data: bytes) -> Any:
    return InertUnpickler(io.BytesIO(data)).load()


@pytest.mark.parametrize("name", NAMES)
def test_the_attacks_are_real(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    try:
        pickle.loads(dumped(attacks(marker)[name]))
    except Exception:
        assert name in ("inside an allowed call", "as a state")  # executed, then stumbled
    assert marker.exists()


@pytest.mark.parametrize("name", NAMES)
def test_attacks_become_stubs(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    attack = attacks(marker)[name]

    content = inert(dumped({"config": attack, "epoch": 3}))

    assert not marker.exists()
    assert content["epoch"] == 3
    assert isinstance(content["config"], Stub | dict)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_with_an_attack_in_it_still_loads(
    name: str, legacy: bool, tmp_path: Path
) -> None:
    marker, path = tmp_path / "executed", tmp_path / "checkpoint.pth"
    model = OFFICIAL["acmil"].model()
    content = {
        "config": attacks(marker)[name],
        "model": OFFICIAL["acmil"].state(model),
        "optimizer": {"state": [attacks(marker)[name]]},
    }
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)

    loaded = load(path)

    assert not marker.exists()
    assert torch.equal(loaded.state_dict()["head.weight"], model.state_dict()["head.weight"])


def test_classes_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "executed"
    touch = f"open({str(marker)!r}, 'w').close()"
    (tmp_path / "struct_of_a_stranger.py").write_text(
        "class Struct:\n"
        f"    def __new__(cls, *args): {touch}; return object.__new__(cls)\n"
        f"    def __init__(self, *args): {touch}\n"
        f"    def __setstate__(self, state): {touch}\n"
        f"    def __del__(self): {touch}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    struct = __import__("struct_of_a_stranger").Struct
    instance = struct()
    instance.width = 128
    data = [pickle.dumps({"config": instance}, protocol) for protocol in range(5)]
    assert marker.exists()
    pickled = marker.unlink()
    del sys.modules["struct_of_a_stranger"]

    contents = [inert(one) for one in data]

    assert pickled is None
    assert "struct_of_a_stranger" not in sys.modules
    assert not marker.exists()
    for content in contents:
        assert isinstance(content["config"], Stub)
        assert vars(content["config"]) == {}
    del instance


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'touch EXECUTED'\ntR.",
        b"(S'touch EXECUTED'\nios\nsystem\n.",
        b"(cos\nsystem\nS'touch EXECUTED'\no.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0etouch EXECUTED\x85R.",
        b"\x80\x04\x8c\x08builtins\x8c\x0egetattr.__call\x93\x8c\x02os\x85R.",
        b"\x80\x04\x8c\x0bcollections\x8c\x1aOrderedDict.fromkeys.__sel\x93)R.",
    ],
)
def test_hand_written_programs_do_nothing(
    program: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(inert(program), Stub)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target",
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch._utils\n_rebuild_parameter\n",
        b"ccollections\nOrderedDict\n",
        b"ctorch\nFloatStorage\n",
        b"cos\nsystem\n",
    ],
)
@pytest.mark.parametrize("state", [b"}S'__call__'\nI1\ns", b"(N}S'__call__'\nI1\nst"])
def test_the_stand_ins_cannot_be_changed(target: bytes, state: bytes) -> None:
    before = {name: dict(vars(unpickle))[name] for name in ("_KNOWN", "_STORAGES")}
    attributes = {cls: dict(vars(cls)) for cls in (unpickle.Record, Stub, unpickle.Inert)}
    with contextlib.suppress(TypeError, AttributeError):
        inert(target + state + b"b.")
    assert {name: dict(vars(unpickle))[name] for name in before} == before
    assert {cls: dict(vars(cls)) for cls in attributes} == attributes
    rebuild = unpickle._KNOWN["torch._utils", "_rebuild_tensor_v2"]
    assert isinstance(rebuild(Storage(torch.float32, 1), 0, (1,), (1,)), StoredTensor)  # type: ignore[operator]


def test_plain_content_is_kept() -> None:
    content = {"epoch": 3, "lr": 2e-4, "names": ["a", "b"], "pair": (1, None), 7: {"deep": True}}
    for protocol in range(5):
        assert inert(pickle.dumps(content, protocol)) == content


def test_windows_that_leave_their_storage_are_refused() -> None:
    storage = Storage(torch.float32, 4)
    storage.fill(torch.arange(4.0).numpy().tobytes())
    assert StoredTensor(storage, 1, (1, 2), (2, 1)).read().tolist() == [[1, 2]]
    for offset, size, stride in (
        (2, (3,), (1,)),
        (0, (5,), (0,)),
        (-1, (1,), (1,)),
        (0, (-1,), (1,)),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            StoredTensor(storage, offset, size, stride).read()
    with pytest.raises(ValueError, match="12 bytes where 16 should be"):
        storage.fill(bytes(12))
