"""YAML and JSON that would fill the memory or the stack are refused in one line."""

from pathlib import Path

import pytest

from foci.audits.folder import read_object
from foci.audits.settings import read_configuration
from foci.backbones.saved import read_record
from foci.cli.options import settings
from foci.errors import FociError
from foci.files.bounds import read_json, read_text, yaml_value

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "its aliases stand for more than 100000 values"),
        ("a: &a [*a]", "its aliases stand for more than 100000 values"),
        ("[" * 10_000, "it is nested too deeply"),
        ("{a: " * 10_000, "it is nested too deeply"),
        ("- " * 5_000, "it is nested too deeply"),
        ("a: [", "is not YAML"),
        ("a: \x1b[2J", "is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "is not YAML"),
    ],
)
def test_yaml_is_refused_before_it_is_written_out(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(FociError) as raised:
        read_configuration(file, {}, {})
    assert says in str(raised.value)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1300
    with pytest.raises(FociError, match=r"--set x=.*has a value that cannot be read"):
        settings([f"x={text}"], "--set")


def test_aliases_that_do_not_explode_are_kept() -> None:
    assert yaml_value("a: &k [0.8, 0.9]\nb: *k\n") == {"a": [0.8, 0.9], "b": [0.8, 0.9]}
    assert yaml_value("") is None


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"1" * 5000])
def test_json(tmp_path: Path, content: bytes) -> None:
    for name, read in (
        ("manifest.json", lambda path: read_object(path)),
        ("backbone.json", lambda path: read_record(path.parent)),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FociError) as raised:
            read(tmp_path / name)
        assert name in str(raised.value)
    deep = content[:1] in b"[{"
    with pytest.raises(ValueError, match="it is nested too deeply" if deep else "."):
        read_json(tmp_path / "manifest.json")
    (tmp_path / "manifest.json").write_text("[1]")
    assert read_json(tmp_path / "manifest.json") == [1]


def test_a_device_is_no_text() -> None:
    with pytest.raises(ValueError, match="no file but a pipe or a device"):
        read_text(Path("/dev/zero"))
