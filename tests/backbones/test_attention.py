"""Query attention against the textbook, and where its queries start."""

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


def test_queries_start_almost_at_zero() -> None:
    torch.manual_seed(0)
    queries = QueryBranches(64, branches=4, heads=2, dropout=0.0).queries
    assert queries.std().item() == pytest.approx(1e-6, rel=0.2)
