"""Loading the page's script and style sheet."""

from pathlib import Path

import pytest

from foci.errors import FociError
from foci.reports.html import CODE, STYLE, load_bundle


def test_a_checkout_without_a_build_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / CODE).write_text("1")
    with pytest.raises(FociError) as error:
        load_bundle(tmp_path)
    assert str(error.value) == (
        f"{tmp_path / STYLE}: is not built; run python3 dev.py run ... , or npm ci and "
        "npm run build in web/"
    )


@pytest.mark.parametrize("text", ['"</script>"', '"</SCRIPT "', "'<!--'"])
def test_code_that_would_end_its_element_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / CODE).write_text(text)
    (tmp_path / STYLE).write_text("a{}")
    with pytest.raises(FociError, match=r"report\.js: would end its own element"):
        load_bundle(tmp_path)


def test_the_licence_of_what_is_bundled_is_there() -> None:
    assert "Leon Sorokin" in load_bundle().code.split("*/")[0]
