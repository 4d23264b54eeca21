"""Tables that are as rich as the terminal is wide."""

from rich.table import Table
from rich.text import Text

from foci.cli.help import console, first_that_fits, plain_table, text_of


def of_width(n: int) -> Table:
    table = plain_table()
    table.add_column("x" * n, no_wrap=True)
    return table


def test_the_first_that_fits_is_taken_else_the_last() -> None:
    tables = [of_width(90), of_width(50), of_width(30)]
    assert [tables.index(first_that_fits(console(w), tables)) for w in (100, 60, 40, 20)] == [
        0, 1, 2, 2,
    ]  # fmt: skip


def test_plain_text_of_a_hundred_columns_without_a_terminal() -> None:
    assert console().width == 100
    text = text_of(console(), [Text("a  ", style="bold"), Text("word " * 30)])
    assert "\x1b" not in text
    assert text.startswith("a\nword")
    assert max(map(len, text.splitlines())) <= 100
    assert text == "\n".join(line.rstrip() for line in text.splitlines())
