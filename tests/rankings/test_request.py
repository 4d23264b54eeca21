"""Rankings by name, or from a file."""

from pathlib import Path

import pytest

from foci.errors import FociError
from foci.rankings import requested


def test_a_name_is_itself() -> None:
    one = requested("leave-one-out")
    assert (one.name, one.method, one.path, one.options) == (
        "leave-one-out", "leave-one-out", None, {},
    )  # fmt: skip
    assert one.text == "leave-one-out"


def test_a_file_is_named_by_its_stem_and_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = requested("from-file=maps/grad cam, v2.csv")
    path = tmp_path / "maps" / "grad cam, v2.csv"
    assert (one.name, one.method, one.path) == ("from-file-grad-cam-v2", "from-file", path)
    assert one.options == {"path": path}
    assert one.text == f"from-file={path}"
    assert requested(one.text) == one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "from-file",
            "^ranking 'from-file': needs the file with the scores; write from-file=PATH$",
        ),
        ("from-file=", "^ranking 'from-file': needs the file with the scores"),
        ("native=a.csv", "native takes no file; write native, or from-file=PATH$"),
        ("from_file=a.csv", "from_file: is not a known ranking; did you mean 'from-file'"),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        requested(text)
