"""Pages that are made from the code, and the navigation over all pages."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from markdown.extensions.toc import slugify
from tools.site.commands import command_page
from tools.site.pages import DOCS, FROM_ROOT, ROOT
from tools.site.python_page import PACKAGES, python_page
from typer.main import get_command

import foci
from foci.cli import app

PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
MADE = {*FROM_ROOT.values(), "commands.md", "python.md"}


def entries(navigation: list[dict[str, Any]]) -> list[str]:
    targets = [target for entry in navigation for target in entry.values()]
    return [name for t in targets for name in (entries(t) if isinstance(t, list) else [t])]


def test_every_page_can_be_found() -> None:
    """In the navigation, or by a link of another page; and the navigation leads somewhere."""
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = entries(settings["project"]["nav"])
    texts = {page: (DOCS / page).read_text(encoding="utf-8") for page in PAGES}
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "docs").rglob("*.ipynb")}
    pages = {*texts, *MADE, *notebooks}
    assert len(listed) == len(set(listed))
    assert set(listed) <= pages
    linked = {
        name
        for page, text in texts.items()
        for name in texts
        if name != page and f"]({name}" in text
    }
    assert pages - set(listed) - linked == set()


def headings(text: str) -> set[str]:
    """Anchors of a page's headings, as the site writes them."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {slugify(re.sub(r"[`*$]|\]\([^)]*\)", "", title), "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_a_heading(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(((?:[\w.-]+/)*[\w-]*(?:\.md)?)#([^)]+)\)", text):
        path = DOCS / page
        there = (path.parent / target if target else path).read_text(encoding="utf-8")
        assert anchor in headings(there), f"{target}#{anchor}"


def test_every_command_and_option_is_listed() -> None:
    page = command_page()
    group: Any = get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            continue
        section = page.partition(f"## foci {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for one in command.params:
            shown = one.opts[0] if one.param_type_name == "option" else one.name.upper()
            assert getattr(one, "hidden", False) or shown in section, (name, shown)


def shown_commands(text: str) -> list[list[str]]:
    """Words of every ``foci`` command in the console blocks of a page."""
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    shown = (line.strip().partition("$ ")[2] for line in lines if line.strip().startswith("$ "))
    words = [shlex.split(line, comments=True) for line in shown]
    return [one[one.index("foci") + 1 :] for one in words if "foci" in one]


@pytest.mark.parametrize("page", ["../README.md", *PAGES])
def test_every_command_and_option_that_a_page_shows_exists(page: str) -> None:
    for words in shown_commands((DOCS / page).read_text(encoding="utf-8")):
        command: Any = get_command(app)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, words
            command, words = command.commands[words[0]], words[1:]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known | {"--help"}, words


def test_commands_are_found_in_console_blocks() -> None:
    page = "text\n```console\n$ foci audit --model M \\\n    --out A  # a note\nsaid\n$ ls\n```\n"
    assert shown_commands(page) == [["audit", "--model", "M", "--out", "A"]]


@pytest.fixture(scope="module")
def python() -> str:
    return python_page(Path(ROOT / "src"))


def test_every_public_name_has_its_entry(python: str) -> None:
    for package in PACKAGES:
        names = getattr(foci, package).__all__
        missing = [name for name in names if f"\n### foci.{package}.{name}\n" not in python]
        assert missing == [], package
    packages = {name for name in foci.__all__ if name.islower() and name != "audit"}
    assert packages == set(PACKAGES)


def test_an_entry_has_signature_arguments_and_example(python: str) -> None:
    entry = python.partition("### foci.metrics.msk\n")[2].partition("\n### ")[0]
    assert "foci.metrics.msk(probs, ks, target, kappa=" in entry
    assert "| `target` |" in entry
    assert "```python\n>>> " in entry
    assert "``" not in entry.replace("```", "")
