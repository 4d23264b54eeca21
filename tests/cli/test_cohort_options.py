"""One group of cohort options for all commands that read slides."""

import inspect
from dataclasses import replace

import pytest
import typer

from foci.bags.cohort import CohortOptions
from foci.cli.commands.audit import audit
from foci.cli.commands.doctor import doctor
from foci.cli.commands.fit import fit
from foci.cli.commands.train import train
from foci.cli.options import COHORT, Given, with_settings
from tests.cli.invoke import Foci

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


@pytest.mark.parametrize("name", ["audit", "fit", "train", "doctor"])
def test_the_help_shows_them_in_a_panel_of_their_own(foci: Foci, name: str) -> None:
    title, asked = (
        ("Cohort", "--help") if name == "doctor" else ("More on the cohort", "--help-all")
    )
    _, cohort = foci(name, asked).out.split(f"─ {title} ─")
    for option in ("--splits", "--slide-table", "--label-column", "--fold", "--mpp"):
        assert option in cohort


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
