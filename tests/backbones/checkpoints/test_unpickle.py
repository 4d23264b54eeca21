"""Nothing that a pickle names is imported, called or changed, and a hostile file costs nothing.

It is refused in one line before it costs time or memory.
"""

import builtins
import contextlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from foci import backbones
from foci.backbones import load
from foci.backbones.checkpoints import inspect, unpickle
from foci.backbones.checkpoints.unpickle import (
    InertUnpickler,
    Storage,
    StoredTensor,
    Stub,
    check_pickle,
)
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import OFFICIAL

MEMORY = 4 * 2**30
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
from foci.backbones import load
from foci.errors import CheckpointError
for path in sys.argv[1:]:
    try:
        load(path)
    except CheckpointError as error:
        print(error)
"""


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


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_with_an_attack_in_it_still_loads(
    name: str, legacy: bool, tmp_path: Path
) -> None:
    marker, path = tmp_path / "executed", tmp_path / "checkpoint.pth"
    state = OFFICIAL["acmil"].state()
    content = {
        "config": attacks(marker)[name],
        "model": state,
        "optimizer": {"state": [attacks(marker)[name]]},
    }
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)

    loaded = load(path)

    assert not marker.exists()
    assert torch.equal(loaded.state_dict()["head.weight"], state["Slide_classifier.fc.weight"])


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


def test_lazy_negation_is_carried_out_and_other_bits_are_refused(tmp_path: Path) -> None:
    """torch.save keeps the numbers as they are and a bit that says to negate them."""
    official = OFFICIAL["clam-sb"]
    state, path = official.state(), tmp_path / "clam.pt"
    lazy = torch._neg_view(-state["classifiers.weight"])
    assert lazy.is_neg()
    for old in (False, True):
        torch.save({**state, "classifiers.weight": lazy}, path,
                   _use_new_zipfile_serialization=not old)  # fmt: skip
        assert torch.equal(load(path).head.weight, state["classifiers.weight"])
    storage = Storage(torch.float32, 2)
    storage.fill(bytes(8))
    assert StoredTensor(storage, 0, (2,), (1,), {"neg": True}).read().tolist() == [0, 0]
    with pytest.raises(ValueError, match="bits that FOCI does not know"):
        StoredTensor(storage, 0, (2,), (1,), {"conj": True}).read()
    torch.save(
        {**state, "classifiers.weight": torch.ones(2, 2, dtype=torch.complex64).conj()}, path
    )
    assert "unknown kind of storage" in refused(path)


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


def archive(path: Path, program: bytes, **storages: bytes) -> Path:
    """A file of torch.save with a pickle of one's own."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", program)
        for key, content in storages.items():
            file.writestr(f"archive/data/{key}", content)
    return path


def refused(path: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert len(message) < 800
    return message


def setting(key: bytes) -> bytes:
    """The pickle of a dictionary with one key, given as instructions."""
    return b"\x80\x02}" + key + b"K\x01s."


def doubled(times: int) -> bytes:
    """A tuple that holds the one before twice."""
    return b"K\x01\x85" + b"2\x86" * times


def nested(depth: int) -> bytes:
    return b"K\x01" + b"\x85" * depth


def test_a_wide_tuple_and_the_state_of_a_generator_are_no_danger(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    settings = {"names": (tuple(range(50_000)), ("a", ("b",))), ("train", 0): 1}
    torch.save({"state_dict": OFFICIAL["clam-sb"].state(), "settings": settings}, path)
    assert inspect(path).format == "CLAM-SB"


def number(bits: int) -> bytes:
    content = (1 << bits).to_bytes(bits // 8 + 2, "little")
    return b"\x8b" + struct.pack("<i", len(content)) + content


def named(*values: bytes) -> bytes:
    """A dictionary of values, given as instructions."""
    items = b"".join(b"X\x06\x00\x00\x00k%05d" % i + one for i, one in enumerate(values))
    return b"\x80\x02}(" + items + b"u."


def classes(n: int) -> bytes:
    return b"\x80\x02" + b"".join(b"cmodule\nC%d\n0" % i for i in range(n)) + b"N."


def colliding(n: int) -> bytes:
    """A dictionary of so many numbers that have one hash."""
    keys = ((i * (2**61 - 1)).to_bytes(10, "little") for i in range(1, n + 1))
    return b"\x80\x02}(" + b"".join(b"\x8a\x0a" + key + b"K\x01" for key in keys) + b"u."


GIGABYTES = b"\x80\x02K\x01r" + struct.pack("<I", 2**28) + b"."
COSTLY = {
    "doubled": (b"\x80\x02" + doubled(60) + b".", "tuples inside tuples, more than 32 deep"),
    "doubled key": (setting(doubled(60)), "tuples inside tuples, more than 32 deep"),
    "deep": (b"\x80\x02" + nested(200_000) + b".", "tuples inside tuples, more than 32 deep"),
    "deep key": (setting(nested(200_000)), "tuples inside tuples, more than 32 deep"),
    "parts": (setting(doubled(30)), "keys of too many parts"),
    "number": (setting(number(40_000)), "a whole number of 40001 bits"),
    # short enough to be read, and still no name to print
    "short number": (setting(number(4_000)), "its entries are <int>; save model.state_dict()"),
    "memo": (GIGABYTES, "a memo of 268435456 places after 2 instructions"),
    "one hash": (colliding(60_000), "more than 10000 keys that are no text"),  # took 26 s
    "keys": (named(*[b"K\x01"] * 60_000), "more than 50000 keys"),
    "names": (classes(5_000), "more than 4096 classes and functions"),
}
"""Programs of a few bytes that would cost time or memory, and the reason they are refused."""


@pytest.mark.parametrize(("program", "message"), COSTLY.values(), ids=COSTLY)
def test_a_costly_pickle_is_refused(program: bytes, message: str, tmp_path: Path) -> None:
    assert message in refused(archive(tmp_path / "a.pt", program))


def test_a_safetensors_file_of_too_many_names(tmp_path: Path) -> None:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"k{i}": empty for i in range(60_000)}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    assert "(more than 50000 names)" in refused(path)  # 300,000 took 32 s


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.pt")
    assert "it is no file but a pipe or a device" in refused(tmp_path / "model.pt")


def test_too_many_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickle, "MOST_INSTRUCTIONS", 100)
    path = archive(tmp_path / "a.pt", classes(5_000))
    assert "a pickle of more than 100 instructions" in refused(path)


def tensor(key: bytes, size: bytes, numel: int = 4, stride: bytes = b"K\x01\x85") -> bytes:
    """Instructions that describe a tensor on the storage of a key."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00" + key
    storage += b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", numel) + b"tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + size + stride + b"\x89NtR"


def test_a_hundred_tensors_on_one_storage(tmp_path: Path) -> None:
    numel = 2**18
    one = tensor(b"0", b"J" + struct.pack("<i", numel) + b"\x85", numel)
    path = archive(tmp_path / "a.pt", named(*[one] * 100), **{"0": bytes(4 * numel)})
    assert f"holds tensors of {100 * numel} numbers that share {numel}" in refused(path)


@pytest.mark.parametrize(
    "size",
    [
        number(61) + b"K\x00\x86",
        b"K\x00" + number(3000) + b"\x86",
        b"X\x01\x00\x00\x00aK\x00\x86",
        b"J" + struct.pack("<i", -5) + b"K\x00\x86",
        b"(" + b"K\x01" * 20 + b"t",
        b"]",
    ],
)
def test_impossible_shapes(size: bytes, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.pt", named(tensor(b"0", size)), **{"0": bytes(16)})
    assert "k00000 cannot be read (a tensor of an impossible shape)" in refused(path)


@pytest.mark.parametrize("wide", [2**21, 2**40])
def test_widths_without_numbers(wide: int, tmp_path: Path) -> None:
    path, state = tmp_path / "a.safetensors", OFFICIAL["clam-sb"].state()
    save_file({**state, "attention_net.0.weight": torch.zeros(wide, 0)}, path)
    assert f"attention_net.0.weight has shape [{wide}, 0]" in refused(path)


def test_a_million_classes(tmp_path: Path) -> None:
    path, state = tmp_path / "a.safetensors", OFFICIAL["clam-sb"].state()
    save_file({**state, "classifiers.weight": torch.zeros(2**18, 1)}, path)
    assert "has n_classes=262144" in refused(path)


def test_names_that_a_terminal_should_not_see(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"\x1b[2Jred": torch.ones(1), "x" * 10_000: torch.ones(1)}, path)
    message = refused(path)
    assert "'\\x1b[2Jred'" in message
    assert "x" * 80 + "..." in message


def test_parts_that_overlap_in_the_archive(tmp_path: Path) -> None:
    """Two storages whose directory entries name the same bytes."""
    path = archive(tmp_path / "a.pt", named(tensor(b"0", b"K\x04\x85"), tensor(b"1", b"K\x04\x85")),
                   **{"0": bytes(2**20), "1": b""})  # fmt: skip
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
    source, copy = entries[1], entries[2]
    directory = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 1)
    second = whole.index(b"PK\x01\x02", directory + 1)
    fields = whole[directory + 16 : directory + 28]  # checksum and both sizes
    offset = struct.pack("<I", source.header_offset)
    changed = bytearray(whole)
    changed[second + 16 : second + 28] = fields
    changed[second + 42 : second + 46] = offset
    path.write_bytes(changed)
    assert copy.file_size == 0
    refused(path)


@pytest.mark.parametrize("name", ["d_in", "hidden", "d", "n_classes", "head_hidden"])
@pytest.mark.parametrize("value", [10**6, 10**12, 2**70])
def test_widths_of_a_model_folder_are_not_allocated(name: str, value: int, tmp_path: Path) -> None:
    model = backbones.create("abmil", d_in=16, n_classes=2, d=8, hidden=4, head_hidden=4)
    folder = backbones.save(model, tmp_path / "model")
    facts = json.loads((folder / "backbone.json").read_text())
    facts["config"][name] = value
    del facts["own_sha256"]  # as somebody who edits it on purpose would
    (folder / "backbone.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError) as error:
        load(folder)
    assert f"has {name} of {value:.6g}, wider than any tensor of weights.safetensors" in str(
        error.value
    )


def test_a_number_of_thousands_of_digits_in_a_model_folder(tmp_path: Path) -> None:
    model = backbones.create("abmil", d_in=16, n_classes=2)
    folder = backbones.save(model, tmp_path / "model")
    (folder / "backbone.json").write_text('{"config": ' + "1" * 5000 + "}")
    with pytest.raises(CheckpointError, match=r"backbone.json: is not JSON"):
        load(folder)


def test_in_a_process_with_little_memory(tmp_path: Path) -> None:
    """None of the attacks needs the memory that it asks for."""
    paths = [archive(tmp_path / f"{name}.pt", program) for name, (program, _) in COSTLY.items()]
    script = LIMITED.format(limit=MEMORY)
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, paths)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(paths)


def test_a_legacy_file_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    first: list[Any] = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    head = b"".join(pickle.dumps(one, protocol=2) for one in first)
    path.write_bytes(head + setting(doubled(60)))
    assert "tuples inside tuples" in refused(path)


def test_real_pickles_pass_and_the_file_stays_at_its_beginning() -> None:
    for protocol in range(2, 6):
        content = {"a": [1, (2, 3), {4}], "b": frozenset({(1, 2)}), "c": bytearray(b"x")}
        file = io.BytesIO(pickle.dumps(content, protocol))
        check_pickle(file)
        assert file.tell() == 0
        assert pickle.load(file) == content
