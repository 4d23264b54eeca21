"""Tables that are as rich as the terminal is wide."""

from rich.table import Table
from rich.text import Text

from foci.cli.text import console, first_that_fits, plain_table, text_of


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
