"""Help of every command, and how options reach it."""

import inspect
import re
from dataclasses import replace
from typing import get_args

import pytest
import typer
from typer.models import OptionInfo

from foci.bags.cohort import CohortOptions
from foci.cli import app
from foci.cli.commands.audit import audit
from foci.cli.commands.doctor import doctor
from foci.cli.commands.fit import fit
from foci.cli.commands.study import app as study
from foci.cli.commands.train import train
from foci.cli.options import COHORT, PANELS, Given, with_settings
from tests.cli.invoke import Foci

SHOWN = [one for one in app.registered_commands if one.callback and not one.hidden]
COMMANDS = [str(one.callback.__name__) for one in SHOWN if one.callback]
EVERY = [
    [],
    *([name] for name in COMMANDS),
    ["study"],
    *(
        ["study", one.name or one.callback.__name__]
        for one in study.registered_commands
        if one.callback
    ),
]
"""Words before ``--help`` of the app, its commands, and those of ``foci study``."""

MANY = 6
"""A command with more options than this groups them."""


def options_of(command: str) -> dict[str, str | None]:
    """Panel of every option."""
    (found,) = [
        one.callback
        for one in SHOWN
        if one.callback is not None and one.callback.__name__ == command
    ]
    described = {
        name: [one for one in get_args(parameter.annotation) if isinstance(one, OptionInfo)]
        for name, parameter in inspect.signature(found).parameters.items()
    }
    return {
        name: infos[0].rich_help_panel
        for name, infos in described.items()
        if infos and not infos[0].hidden
    }


@pytest.mark.parametrize("command", EVERY, ids=" ".join)
def test_the_short_form_works_and_flags_have_no_type(foci: Foci, command: list[str]) -> None:
    short = foci.done(*command, "-h")
    assert short == foci(*command, "--help")
    assert short.err == ""
    assert "Usage: " in short.out
    assert "--help" in short.out
    assert "bool" not in short.out.lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_many_options_are_grouped_by_subject(foci: Foci, command: str) -> None:
    panels = options_of(command)
    if len(panels) <= MANY:
        return
    assert len(PANELS[command]) >= 2
    wanted = {name: title for title, names in PANELS[command].items() for name in names}
    assert {name: panel for name, panel in panels.items() if name != "help_all"} == {
        name: title for name, title in wanted.items() if name in panels
    }
    said = foci(command, "-h").out
    for title in PANELS[command]:
        assert title in said


@pytest.mark.parametrize("command", ["audit", "train", "fit"])
def test_long_help_is_folded_until_asked_for(foci: Foci, command: str) -> None:
    short, whole = foci(command, "--help").out, foci(command, "--help-all").out
    first = len(PANELS[command]["Options"])
    assert first <= 14
    assert (
        len(re.findall(r"^│ (?:\*  |   )?--\w", short, flags=re.MULTILINE)) == first + 2
    )  # help, help-all
    every = {name: f"--{_spelled(name)}" for names in PANELS[command].values() for name in names}
    for option in every.values():
        assert re.search(rf" {option}\b", short, flags=re.MULTILINE), "at least named"
        assert re.search(rf"^│ (?:\*  |   )?{option[:20]}", whole, flags=re.MULTILINE), "explained"


def _spelled(name: str) -> str:
    """An option of a parameter; two have another name than their parameter."""
    other = {"change": "set", "width": "set"}
    return other.get(name, name).replace("_", "-")


def test_shared_options_are_not_moved_for_other_commands() -> None:
    assert options_of("report")["accept_changed"] == "Output"
    assert options_of("compare")["accept_changed"] is None


OPTIONS = tuple(CohortOptions.model_fields)


@pytest.mark.parametrize(
    ("command", "without"),
    [(audit, ()), (fit, ()), (train, ("classes",)), (doctor, ("classes", "n_cap"))],
)
def test_a_command_has_every_option_of_the_model(command, without: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    parameters = inspect.signature(command).parameters
    assert "given" not in parameters
    assert [name for name in parameters if name in OPTIONS] == [
        name for name in OPTIONS if name not in without
    ]


def test_a_command_gets_what_was_given_as_one_argument() -> None:
    got: list[object] = []

    @with_settings(features=replace(COHORT["features"], required=True))
    def command(given: Given, seed: int = 3) -> None:
        got.extend([given, seed])

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    with pytest.raises(SystemExit):
        app(["--features", "f", "--classes", "B, A", "--n-cap", "5"])
    given, seed = got
    assert seed == 3
    options = CohortOptions(**given)
    assert (str(options.features), options.classes, options.n_cap) == ("f", ("B", "A"), 5)
    assert options.model_fields_set == {"features", "classes", "n_cap"}


def test_a_required_option_is_missed_and_a_wrong_value_is_one_line(foci: Foci) -> None:
    assert "--features" in foci("train", "abmil", "--labels", "l.csv", "--out", "o").err
    assert foci("fit", "m", "--out", "o").code == 2
    refusal = foci(
        "train", "abmil", "--features", "f", "--labels", "l", "--out", "o", "--n-cap", "0"
    )
    assert refusal.err.startswith("foci: n_cap: cannot be 0")
