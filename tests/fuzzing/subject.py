"""A good file, how it is damaged, and the code that reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzzing.mutations import (
    BYTES,
    Mutation,
    insert_token,
    inside_zip,
    replace_value,
)

ZIP = (*BYTES, inside_zip, inside_zip, inside_zip)
TEXT = (*BYTES, insert_token, insert_token, insert_token)
JSON = (*TEXT, replace_value, replace_value, replace_value, replace_value)


@dataclass(frozen=True)
class Subject:
    """A good file and its reader.

    Attributes:
        group: Kind of file, for the figures.
        make: Writes the good file, with what belongs beside it, into a folder.
        file: The one to damage, relative to the folder.
        read: Reads it out of the folder.
        mutations: Ways to damage it.
    """

    group: str
    make: Callable[[Path], object]
    file: str
    read: Callable[[Path], object]
    mutations: tuple[Mutation, ...] = tuple(BYTES)
