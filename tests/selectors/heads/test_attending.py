"""A head that attends to summaries of its bag."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from foci import selectors
from foci.backbones import Backbone, fingerprint
from foci.bags import Cohort
from foci.errors import CheckpointError
from foci.selectors import SelectorHead, SelectorRecipe, recipe, vary
from foci.selectors.evidence.columns import evidence_columns
from foci.selectors.evidence.head import EvidenceHead
from foci.selectors.fitting.fit import new_head
from foci.selectors.fitting.loop import Fit, validate
from foci.selectors.fitting.prepared import PreparedBags, pad
from foci.selectors.gated.choice import gate_backbone
from foci.selectors.heads.attending import WIDTH, BagContext
from foci.selectors.heads.shape import make_head, shape_of
from foci.selectors.selector import Head, scores_at
from tests.backbones.every import small
from tests.makers.fits import short

ATTENDING = vary(recipe("centred"), {"head": "attending"})


def drawn(head: nn.Module, seed: int = 0) -> nn.Module:
    """Every weight at random: the context of a new head is 0."""
    torch.manual_seed(seed)
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=0.5)
    return head


def test_it_is_what_the_equations_say() -> None:
    context = drawn(BagContext(6, 5, summaries=3)).double()
    u = torch.randn(7, 6, dtype=torch.float64)
    summaries = []
    for m in range(3):
        weights = [torch.exp(context.queries.weight[m] @ u[i]) for i in range(7)]
        values = [context.value.weight @ u[i] + context.value.bias for i in range(7)]
        summaries.append(sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights))
    for i, got in enumerate(context(u)):
        look = context.look.weight @ u[i] + context.look.bias
        keys = [context.key.weight @ s + context.key.bias for s in summaries]
        weights = [torch.exp(look @ key / WIDTH**0.5) for key in keys]
        seen = sum(w * s for w, s in zip(weights, summaries, strict=True)) / sum(weights)
        torch.testing.assert_close(got, context.out.weight @ seen)


def test_it_starts_as_the_head_without_it() -> None:
    torch.manual_seed(3)
    plain = SelectorHead(8, 2, 16)
    torch.manual_seed(3)
    attending = SelectorHead(8, 2, 16, summaries=4)
    tokens = torch.randn(2, 9, 8)
    assert torch.equal(attending(tokens), plain(tokens))
    model = small("transmil", "paper", 2)
    heads = [new_head(model, plan, seed=1).state_dict() for plan in (recipe("centred"), ATTENDING)]
    assert all(torch.equal(value, heads[1][name]) for name, value in heads[0].items())
    assert any(name.startswith("context.") for name in heads[1])


def test_it_starts_as_evidence() -> None:
    model = small("transmil", "paper", 2).eval()
    head = new_head(model, recipe("attending-residual"), seed=0)
    with torch.no_grad():
        tokens = model.embed(torch.randn(11, model.d_in))
        columns = evidence_columns(model, tokens)
        assert torch.equal(head(tokens, columns), columns[..., 0])


def test_the_order_of_the_tiles_makes_no_difference() -> None:
    head = drawn(SelectorHead(8, 3, 16, summaries=4)).double()
    evident = drawn(EvidenceHead(8, 3, 16, 2, summaries=4)).double()
    tokens = torch.randn(40, 8, dtype=torch.float64)
    columns = torch.randn(40, 3, 2, dtype=torch.float64)
    for seed in range(5):
        order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(head(tokens[order]), head(tokens)[order])
        torch.testing.assert_close(
            evident(tokens[order], columns[order]), evident(tokens, columns)[order]
        )


def test_a_tile_sees_the_others() -> None:
    """A head that scores tiles one by one would pass every other test here."""
    head, plain = drawn(SelectorHead(8, 1, 16, summaries=4)), drawn(SelectorHead(8, 1, 16))
    tokens = torch.randn(12, 8)
    others = torch.cat([tokens[:1], torch.randn(11, 8)])
    assert torch.equal(plain(tokens)[0], plain(others)[0])
    assert abs(float((head(tokens)[0] - head(others)[0]).detach())) > 1e-3


def prepared(model: Backbone, cohort: Cohort, plan: SelectorRecipe) -> PreparedBags:
    gated = gate_backbone(model, "attention")
    return PreparedBags(cohort, gated, "label", 1.0, evidence=plan.start != "random")


@pytest.mark.parametrize("plan", [ATTENDING, recipe("attending-residual")], ids=lambda p: p.name)
def test_scores_do_not_depend_on_the_rest_of_the_batch(
    plan: SelectorRecipe, cohort: Cohort
) -> None:
    model = small("transmil", "paper", 2).double().eval().requires_grad_(False)
    head: Head = drawn(new_head(model, plan, 0))  # type: ignore[assignment]
    bags = prepared(model, cohort, plan)
    batch = bags.batch(cohort.split("val").slides)
    lengths = batch.n_tiles.tolist()
    assert len(set(lengths)) > 1

    def noisy(value: Tensor) -> Tensor:
        value = value.clone()
        value[~batch.mask] = 1e3 * torch.randn_like(value[~batch.mask])
        return value

    garbage = {name: noisy(value) for name, value in batch.tiles.items()}
    for tiles in (batch.tiles, garbage):
        together = scores_at(head, tiles, batch.targets, batch.mask)
        for row, slide in enumerate(cohort.split("val")):
            one = pad([bags[slide]])
            alone = scores_at(head, one.tiles, one.targets, one.mask)[0]
            torch.testing.assert_close(together[row, : lengths[row]], alone)
    losses = []
    for size in (1, 3):
        varied = vary(plan, {"schedule.batch_size": size})
        slides = cohort.split("val").slides
        losses.append(validate(Fit(head, bags, slides, slides, varied, 0))[0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_twice_the_tiles_cost_twice_as_much() -> None:
    head = SelectorHead(8, 2, 16, summaries=4)
    counts = []
    for n in (1000, 2000, 3000):
        with FlopCounterMode(display=False) as counter:
            head(torch.zeros(n, 8))
        counts.append(counter.get_total_flops())
    assert counts[1] - counts[0] == counts[2] - counts[1] > 0
    assert counts[2] < 3.01 * counts[0]


def test_every_weight_learns() -> None:
    head = SelectorHead(8, 2, 16, summaries=4)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    tokens = torch.randn(3, 20, 8)
    grown = []
    for _ in range(2):
        optimizer.zero_grad()
        head(tokens).square().sum().backward()
        grown.append({name: bool(p.grad.any()) for name, p in head.named_parameters()})
        optimizer.step()
    assert [name for name, seen in grown[0].items() if not seen] == [
        f"context.{part}"
        for part in ("queries.weight", "value.weight", "value.bias", "look.weight", "look.bias",
                     "key.weight", "key.bias")
    ]  # fmt: skip
    assert [name for name, seen in grown[1].items() if not seen] == []


@pytest.mark.parametrize("backbone", ["abmil", "transmil"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_selector_scores_alike(
    backbone: str, dtype: torch.dtype, cohort: Cohort, tmp_path: Path
) -> None:
    model = small(backbone, "paper", 2).to(dtype).eval()
    fitted = selectors.fit(model, cohort, short("attending-residual"), out=tmp_path)
    again, x = selectors.load(tmp_path, model), cohort.bag("s1").x
    for ours, theirs in ((fitted.best, again.best), (fitted.last, again.last)):
        assert torch.equal(ours.rank(x, 0), theirs.rank(x, 0))
        assert fingerprint(ours.head) == fingerprint(theirs.head)
    assert {p.dtype for p in again.last.head.parameters()} == {dtype}
    assert bool(again.last.head.state_dict()["correction.context.out.weight"].any())
    assert shape_of(make_head(shape_of(fitted.last.head))) == shape_of(fitted.last.head)


def test_a_head_of_another_kind_than_its_recipe_is_refused(cohort: Cohort, tmp_path: Path) -> None:
    model = small("transmil", "paper", 2)
    selectors.fit(model, cohort, short("attending-residual", 1), out=tmp_path)
    path = tmp_path / "selector.json"
    facts = json.loads(path.read_text())
    facts["recipe"]["head"] = "token"
    path.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=r"describes a head .*summaries=8.*does not fit"):
        selectors.load(tmp_path, model)


def test_a_selector_of_an_earlier_foci_names_no_summaries(cohort: Cohort, tmp_path: Path) -> None:
    model = small("transmil", "paper", 2)
    fitted = selectors.fit(model, cohort, short("tuned", 1), out=tmp_path)
    path = tmp_path / "selector.json"
    facts = json.loads(path.read_text())
    assert (facts["recipe"].pop("head"), facts["head"].pop("summaries")) == ("token", 0)
    del facts["own_sha256"]
    path.write_text(json.dumps(facts))
    again = selectors.load(tmp_path, model)
    assert again.recipe == fitted.recipe
    assert fingerprint(again.last.head) == fingerprint(fitted.last.head)


def test_no_correction_no_context(cohort: Cohort) -> None:
    plan = short("tuned", 1, head="attending")
    pooling = selectors.fit(small("abmil", "paper", 2), cohort, plan)
    assert (pooling.last.head.hidden, pooling.last.head.summaries) == (0, 0)
    other = selectors.fit(small("transmil", "paper", 2), cohort, plan)
    assert (other.last.head.hidden, other.last.head.summaries) == (256, 8)
