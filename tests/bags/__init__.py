"""Tests of bags, label tables and splits."""

from contextlib import AbstractContextManager

import pytest

from foci.errors import CohortError


def refused(match: str) -> AbstractContextManager[pytest.ExceptionInfo[CohortError]]:
    """Inside the block a table or cohort is refused, with these words."""
    return pytest.raises(CohortError, match=match)
