"""Which class a question is about."""

from __future__ import annotations

import operator

from foci.errors import FociError


def class_index(target: int, n_classes: int) -> int:
    """A class as a plain number; NumPy's are welcome.

    >>> class_index(1, n_classes=2)
    1
    """
    if not hasattr(target, "__index__") or not 0 <= operator.index(target) < n_classes:
        fix = f"give a class index from 0 to {n_classes - 1}, or None for the predicted class"
        raise FociError("target", f"is {target!r}", fix)
    return operator.index(target)
