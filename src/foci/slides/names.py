"""File names for slides, whatever characters their names hold."""

from __future__ import annotations

import hashlib
import re


def file_name(slide_id: str) -> str:
    """A slide's name as a file name; where characters are replaced, a digest keeps it apart.

    >>> file_name("TCGA-05-4244-01Z-00-DX1"), file_name("a/b")
    ('TCGA-05-4244-01Z-00-DX1', 'a_b-c14cddc0')
    """
    safe = re.sub(r"[^\w.+=@-]", "_", slide_id).lstrip(".") or "_"
    if safe == slide_id and len(safe) <= 180:
        return safe
    return f"{safe[:180]}-{hashlib.sha256(slide_id.encode()).hexdigest()[:8]}"
