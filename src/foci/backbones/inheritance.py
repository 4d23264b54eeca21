"""Shortcuts around a method are only right for classes that have not replaced it."""

from __future__ import annotations

from foci.backbones.base import Backbone


def keeps(backbone: Backbone, base: type, *methods: str) -> bool:
    """Whether the named methods of a backbone are still those of ``base``.

    Args:
        backbone: Perhaps of a subclass that calibrates, clips or otherwise changes an answer.
        base: The class whose inner workings a shortcut knows.
        *methods: What the shortcut goes around.
    """
    return all(
        name not in vars(backbone) and getattr(type(backbone), name) is getattr(base, name)
        for name in methods
    )
