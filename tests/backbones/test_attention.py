"""Query attention against the textbook; rows by query and by head."""

import pytest
import torch

from foci.backbones.attention import (
    QueryAttention,
    QueryBranches,
)


def test_equals_textbook_multi_head_attention() -> None:
    """torch's own attention projects keys and values of every tile before pooling."""
    torch.manual_seed(0)
    ours = QueryAttention(12, 3, 0.0).double()
    textbook = torch.nn.MultiheadAttention(12, 3, batch_first=True).double()
    with torch.no_grad():
        textbook.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        textbook.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
        textbook.out_proj.load_state_dict(ours.out.state_dict())
        query, tokens = torch.randn(12).double(), torch.randn(2, 9, 12).double()

        weights = torch.softmax(ours.logits(query, tokens), dim=-2)
        pooled = weights.transpose(-1, -2) @ tokens
        got = ours(ours.project(pooled))
        want, maps = textbook(query.expand(2, 1, 12), tokens, tokens, average_attn_weights=False)

    torch.testing.assert_close(weights.transpose(-1, -2), maps.squeeze(-2), rtol=0, atol=1e-12)
    torch.testing.assert_close(got, ours.norm(want.squeeze(-2)), rtol=0, atol=1e-12)


def test_rows_are_ordered_by_query_then_by_head() -> None:
    torch.manual_seed(0)
    branches = QueryBranches(8, branches=3, heads=2, dropout=0.0)
    tokens, pooled = torch.randn(5, 8), torch.randn(4, 6, 8)
    logits, values = branches(tokens), branches.project(pooled)
    summaries = branches.summarise(values)
    assert logits.shape == (5, 6)
    assert summaries.shape == (4, 3, 8)
    for index, attention in enumerate(branches.attention):
        rows = slice(2 * index, 2 * index + 2)
        assert isinstance(attention, QueryAttention)
        want = attention.logits(branches.queries[0, index], tokens)
        torch.testing.assert_close(logits[:, rows], want)
        torch.testing.assert_close(values[:, rows], attention.project(pooled[:, rows]))
        torch.testing.assert_close(summaries[:, index], attention(values[:, rows]))


def test_queries_start_almost_at_zero() -> None:
    torch.manual_seed(0)
    queries = QueryBranches(64, branches=4, heads=2, dropout=0.0).queries
    assert queries.std().item() == pytest.approx(1e-6, rel=0.2)
