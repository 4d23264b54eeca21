import pytest

from foci.audits.folder import column


@pytest.mark.parametrize(
    ("ranking", "seed", "want"),
    [("native", None, "native"), ("selector", 0, "selector-0"), ("random", 12, "random-12")],
)
def test_a_column_says_ranking_and_seed(ranking: str, seed: int | None, want: str) -> None:
    assert column(ranking, seed) == want
