"""Every command of the tutorial runs and says what the page shows."""

from pathlib import Path

import pytest
from tools.site.tutorial import PAGE, PROGRESS, differences, renewed, run, steps

TEXT = PAGE.read_text(encoding="utf-8")
STEPS = steps(TEXT)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("tutorial")
    outputs = run(TEXT, folder)
    assert (folder / "audit" / "report.html").stat().st_size > 100_000
    return outputs


@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step.command[:60] for step in STEPS])
def test_the_page_shows_what_the_command_says(number: int, said: list[str]) -> None:
    again = "if that is meant: python -m tools.site.tutorial"
    assert differences(STEPS[number].shown, said[number]) == [], again


def test_the_page_has_all_its_commands() -> None:
    assert [step.command.split()[1] for step in STEPS if step.command.startswith("foci")] == [
        "demo", "train", "audit", "report", "audit", "compare", "export",
    ]  # fmt: skip


def test_an_output_may_be_shown_by_its_first_paragraphs() -> None:
    shown, said = "a 1\n\nb\n\n...\n", "a 1\n\nb\n\nc\n\nd\n"
    assert differences(shown, said) == []
    assert differences(shown, said.replace("b", "x")) != []
    assert differences(shown, "a 1\n") != []
    assert differences("a 1\n\nb\n", said) != []


def test_renewing_with_the_same_outputs_changes_nothing() -> None:
    assert renewed(TEXT, [step.shown for step in STEPS]) == TEXT
    other = renewed(TEXT, ["said\n"] * len(STEPS))
    assert {step.shown for step in steps(other)} == {"said\n", "said\n\n\n...\n"}


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("one epoch took 2.0 s: about 38 s", "one epoch took 0.4 s: about 7 s"),
        ("about 16 s for 19 more epochs", "about 2 min for 19 more epochs"),
        ("loss 0.701", "loss 0.722"),
        ("13 tiles, 7.8 to 37.8", "13 tiles, 7.8 to 39.0"),
        ("K   9.5   0.97", "K   9.5  0.97"),
        (
            "the map of /home/you/a.csv, not\nthe model's",
            "the map of /var/x/y/a.csv,\nnot the model's",
        ),
    ],
)
def test_times_and_rounding_may_differ(shown: str, said: str) -> None:
    assert differences(shown, said) == []


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("Can I believe the map? yes", "Can I believe the map? inconclusive"),
        ("9 tiles", "11 tiles"),
        ("loss 0.701", "loss 0.801"),
        ("train 1/20", "train 1/30"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("wrote /home/you/a.csv", "wrote /home/you/b.csv"),
        ("", "note: new"),
    ],
)
def test_everything_else_may_not(shown: str, said: str) -> None:
    assert differences(shown, said) != []


def test_the_progress_of_a_slow_machine_is_no_output() -> None:
    assert PROGRESS.fullmatch("reading bags: 109/120, 1 s left")
    assert not PROGRESS.fullmatch("train  1/20  loss 0.701 (bag 0.701)")
    assert not any(PROGRESS.fullmatch(line) for line in TEXT.splitlines())
