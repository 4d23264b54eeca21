"""The table on the terminal: complete, and not broken where it is narrow."""

import json
import re
from pathlib import Path
from textwrap import wrap
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from foci.audits import StoredAudit
from foci.audits.folder import SUMMARY
from foci.audits.records import Carried, CarriedLine
from foci.cli.text import (
    audit_text,
    carried_plot,
    console,
    first_that_fits,
    plain_table,
    text_of,
)
from foci.reports.first_screen import QUESTION, first_screen
from foci.reports.text import LINE, MAP, ORDER, TILES
from tests.makers.curves import Counts
from tests.makers.folders import write_folder
from tests.makers.synthetic import Plan, make

COUNTS: Counts = {
    "native": [[9, None, 9, 9]],
    "selector": [[2, 2, 2, 2], [4, 2, 2, 2]],
    "random": [[6, 6, 6, 6]] * 2,
}
CASES = ["P1", "P2", "P3", "P3"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    return audit_of(tmp_path_factory.mktemp("plain") / "a")


def audit_of(folder: Path, counts: Counts = COUNTS, **how: Any) -> StoredAudit:
    labels = how.pop("labels", ["tumour", "benign"] * 2)
    return write_folder(folder, counts, CASES, labels, targets=[1, 0] * 2, **how)


def row(text: str, ranking: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [ranking]]
    return line.split()[1:]


def table_in(text: str) -> str:
    """The table of rankings, with what stands between it and the legend."""
    return text[text.index("\nPrediction view") : text.index("\nMSK, decided ")]


def test_everything_is_there(tmp_path: Path) -> None:
    audit = audit_of(tmp_path / "a", name="my model", drops={"native": 0.256})
    text = audit_text(audit)
    assert text.startswith("my model (abmil)\n4 slides of 3 patients, 1 skipped in the whole")
    assert "AUC 1.000, accuracy 1.000" in text
    assert "Prediction view: do the first tiles recover what the model says?" in text
    # MSK, deciding tiles, K over all slides, Reach, AUKC, null maps, SHI twice, Faithfulness, AUC
    native = row(text, "native")
    assert native[:4] == ["9", "none", "70.8", "0.75"]
    assert native[5:] == ["-", "-", "-0.50", "0.128", "1.000"]
    selector = row(text, "selector")
    assert selector[:4] == ["2", "none", "2.3", "1.00"]
    assert selector[6:8] == ["0.75", "0.62"]
    assert row(text, "random")[7] == "-"
    assert "9 to >256" in text
    assert "9.0 to 173.7" in text
    told = audit.answers
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        assert f"\n{question} {one.answer}\n  {one.sentences[0][:60]}" in text
    assert LINE in " ".join(text.split())
    assert "note: Synthetic curves." in text
    assert "quartiles of a median, 95% interval of a mean" in text
    assert "\x1b" not in text
    parts = (MAP, "Prediction view", "\nranking ", "\nnote: ", "\nMSK, decided ", "\nA rationale")
    places = [text.index(part) for part in parts]
    assert places == sorted(places), "answers, table, caveats, abbreviations"


def test_deciding_tiles_and_null_maps_that_an_order_beats(tmp_path: Path) -> None:
    audit = make(tmp_path / "a", Plan(n_slides=40, names=()))
    numbers, table = audit.summary.views["prediction"], table_in(audit_text(audit, width=140))
    for ranking in audit.summary.rankings:
        decided, null = numbers[ranking].decided, numbers[ranking].null
        assert decided is not None
        assert null is not None
        cells = row(table, ranking)
        count = "none" if decided.deciding is None else f"{decided.deciding:g}"
        assert (cells[1], cells[5]) == (count, f"{null.beaten}/{null.n_maps}")
        assert f" on {decided.decisive_share:.0%} " in table
    assert numbers["selector"].decided.deciding is not None  # type: ignore[union-attr]


@pytest.mark.parametrize("width", [40, 72, 80, 100])
def test_sentences_hang_below_their_answer(plain: StoredAudit, width: int) -> None:
    text, told = audit_text(plain, width=width), plain.answers
    questions = {MAP: told.map, TILES: told.tiles, ORDER: told.order}
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    block = text[text.index(MAP) : text.index("\nPrediction view")].splitlines()
    sentences = [line for line in block if re.match(r"  \S", line)]
    wanted = [sentence for one in questions.values() for sentence in one.sentences]
    assert len(sentences) == len(wanted)
    assert all(a.startswith(b.strip()) for a, b in zip(wanted, sentences, strict=True))
    flush = " ".join(line for line in block if line and not line.startswith(" "))
    assert flush == " ".join(f"{name} {one.answer}" for name, one in questions.items())
    flat = " ".join(text.split())
    for name, one in questions.items():
        assert f"{name} {one.answer} {' '.join(one.sentences)}" in flat


def test_answers_that_depend_on_the_threshold_say_so(tmp_path: Path) -> None:
    audit = audit_of(tmp_path / "a")
    says = "The answers depend on the threshold: see the report."
    assert says not in audit_text(audit)
    stored = audit.summary.model_dump(mode="json")
    stored["answers"]["sensitive"] = ["order"]
    (audit.folder / SUMMARY).write_text(json.dumps(stored))
    assert says in audit_text(StoredAudit.load(audit.folder))


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("n_more", [0, 3])
def test_no_line_is_too_long_and_no_number_is_cut(tmp_path: Path, width: int, n_more: int) -> None:
    more = {name: [[3, 3, 3, 200]] for name in ("integrated-gradients", "leave-one-out", "norm")}
    counts = {**COUNTS, **dict(list(more.items())[:n_more])}
    audit = audit_of(tmp_path / "a", counts, change={"rankings": tuple(COUNTS)})
    text = audit_text(audit, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for ranking in counts:
        start = wrap(ranking, 12)[0] if n_more and width < 100 else ranking
        assert len(row(table_in(text), start)) == (10 if width >= 100 else 8)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_intervals_give_way_to_a_narrow_terminal(plain: StoredAudit) -> None:
    tables = [table_in(audit_text(plain, width=width)) for width in (140, 100, 80)]
    ends = [len(re.findall(r"\d to [>-]?\d", text)) for text in tables]
    assert ends[0] > ends[1] > ends[2]


@pytest.mark.parametrize(("width", "shown_columns"), [(72, 7), (62, 6), (40, 3)])
def test_a_narrow_terminal_loses_columns_and_not_letters(
    tmp_path: Path, width: int, shown_columns: int
) -> None:
    more = {name: [[3, 3, 3, 200]] for name in ("integrated-gradients", "leave-one-out")}
    counts = {**COUNTS, **more}
    text = audit_text(audit_of(tmp_path / "a", counts), width=width)
    assert max(map(len, text.splitlines())) <= width
    text = table_in(text)
    for ranking in COUNTS:
        numbers = row(text, ranking)
        assert len(numbers) == shown_columns
        assert all(re.fullmatch(r"-|none|>\d+|-?\d+(\.\d+)?", number) for number in numbers)
    for start, rest in (("integrated-", "gradients"), ("leave-one-", "out")):
        assert row(text, start)[2] == "52.3"  # 52.25: halves go away from zero
        assert row(text, rest) == [], "broken once, at a hyphen"


def test_the_legend_explains_what_is_shown(plain: StoredAudit) -> None:
    names = [
        "MSK, decided", "Deciding tiles", "K, all slides", "AUKC", "Nulls beaten", "SHI",
        "Faith. AUC", "AUC at 32", "x to y",
    ]  # fmt: skip
    for width, absent in (
        (100, []),
        (80, ["x to y", "AUKC", "AUC at 32"]),
        (62, ["x to y", "AUKC", "AUC at 32", "Faith. AUC"]),
        (40, ["x to y", "AUKC", "AUC at 32", "Nulls beaten", "SHI", "Faith. AUC"]),
    ):
        text = audit_text(plain, width=width)
        legend = text[text.index("\nMSK, decided ") :].split("\nnot shown")[0]
        assert [name for name in names if f"\n{name} " not in legend] == sorted(
            absent, key=names.index
        )


def test_without_labels_and_rankings_to_compare_with(tmp_path: Path) -> None:
    audit = audit_of(tmp_path / "a", {"native": COUNTS["native"]}, labels=[None] * 4)
    text = audit_text(audit)
    assert "full bag" not in text
    assert f"{MAP} not assessable\n  random was not run" in text
    assert f"{ORDER} not assessable\n  No candidate was compared" in text
    assert row(text, "native")[-1] == "-"


def test_the_label_view_stands_first_where_it_was_asked_for(tmp_path: Path) -> None:
    audit = audit_of(tmp_path / "a", change={"target": "label"}, labels=["tumour"] * 4)
    text = audit_text(audit)
    assert "Label view: do the first tiles recover what is true?" in text
    assert "The answers follow the model's prediction, the table below the label." in text
    assert row(text, "selector")[3] == "0.50"


def test_the_paper_s_profile_prints_the_paper_s_numbers(tmp_path: Path) -> None:
    text = audit_text(audit_of(tmp_path / "a", change={"profile": "paper", "target": "prediction"}))
    # MSK over slides that reach, its spread over seeds; Reach, AUKC, SHI twice, AUC at 32
    assert row(text, "selector")[:4] == ["2.3", "±", "0.3", "1.00"]
    assert row(text, "native")[:2] == ["9.0", "0.75"]
    assert len(row(text, "selector")) == 8
    assert "SHI vs" in text
    assert "0.67 to 0.78" in text
    assert "Deciding" not in text
    assert "not shown at this width" not in text


def test_names_are_no_markup(tmp_path: Path) -> None:
    text = audit_text(audit_of(tmp_path / "a", name="[bold]x[/bold]"))
    assert text.startswith("[bold]x[/bold] (abmil)")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_what_a_narrow_terminal_leaves_out_is_named(tmp_path: Path, width: int) -> None:
    text = audit_text(audit_of(tmp_path / "a", drops={"native": 0.256}), width=width)
    said = " ".join(text.split())
    left_out = re.search(r"not shown at this width: (.*?); see the report", said)
    named = [] if left_out is None else left_out[1].split(", ")
    table = table_in(text)
    for head, name in (
        ("AUKC", "AUKC"), ("Nulls", "Nulls beaten"), ("Faith.", "Faith. AUC"), ("Reach", "Reach"),
        ("at 32", "AUC at 32"),
    ):  # fmt: skip
        assert (head in table) != (name in named), name
    assert ("intervals" in named) == (table.count(" to ") == 0)
    assert ("intervals of SHI vs native and SHI vs random" in named) == (width == 100)


def of_width(n: int) -> Table:
    return plain_table("x" * n, (), no_wrap=True)


def test_the_first_that_fits_is_taken_else_the_last() -> None:
    tables = [(of_width(n), n) for n in (90, 50, 30)]
    chosen = [first_that_fits(console(width), tables) for width in (100, 60, 40, 20)]
    assert [n for _, n in chosen] == [90, 50, 30, 30]
    assert chosen[1] is tables[1]


def test_plain_text_of_a_hundred_columns_without_a_terminal() -> None:
    assert console().width == 100
    text = text_of(console(), [Text("a  ", style="bold"), Text("word " * 30)])
    assert "\x1b" not in text
    assert text.startswith("a\nword")
    assert max(map(len, text.splitlines())) <= 100
    assert text == "\n".join(line.rstrip() for line in text.splitlines())


def test_the_word_and_its_counts_come_before_everything(plain: StoredAudit) -> None:
    first = first_screen(plain.summary, plain.manifest)
    flat = " ".join(audit_text(plain, width=100).split())
    block = " ".join((QUESTION, f"{first.word}.", *first.sentences, f"Carry: {first.definition}"))
    assert block in flat
    assert flat.index(block) < flat.index(MAP)


def test_the_chart_as_a_line_of_blocks_per_order() -> None:
    line = CarriedLine(share=[0.0, 0.125, 0.5, 1.0], low=[None] * 4, high=[None] * 4)
    chart = Carried(
        ks=[1, 2, 4, 8], n_slides=8, n_cases=8, relative=None, map="native", best="evidence",
        typical=2, lines={"native": line, "evidence": line}, minimum=None,
    )  # fmt: skip
    assert carried_plot(chart, "stand-in map").plain.splitlines() == [
        "Share of slides whose decision the first K tiles carry",
        "stand-in map       ····▁▁▁▁▄▄▄▄█  100% at 8",
        "best order found   ····▁▁▁▁▄▄▄▄█  100% at 8",
        "K                  1   2   4   8",
    ]
