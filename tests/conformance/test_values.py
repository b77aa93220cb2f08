"""What every model computes: shapes, gradients, and that nothing but an input decides on its logits."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor


def apart(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def one_row(batch: Any, row: int) -> tuple[Tensor | None, ...]:
    return tuple(None if part is None else part[row : row + 1] for part in batch.inputs)


@pytest.mark.parametrize("training", [False, True])
def test_forward_and_backward_shapes(case: Any, training: bool) -> None:
    model = case.model().train(training)
    output = model(*case.batch(3).inputs)
    config = case.config
    assert output.logits.shape == (3, config.n_classes)
    assert torch.isfinite(output.logits).all()
    if output.heads is not None:
        shape = (3, config.depth, config.n_heads)
        assert output.heads.budget.shape == output.heads.k.shape == shape[:2]
        assert output.heads.scores.shape == output.heads.selected.shape == shape
        assert output.heads.k.dtype == torch.int64
        assert output.heads.selected.dtype == torch.bool
        assert torch.equal(output.heads.selected.sum(-1), output.heads.k)
        torch.testing.assert_close(output.heads.scores.sum(-1), torch.ones(shape[:2]))
    if output.tokens is not None:
        tokens = output.tokens
        shape = (3, config.depth, config.n_tokens)
        assert tokens.keep.shape == tokens.halting.shape == shape
        assert tokens.keep.dtype == torch.bool
        assert tokens.kept.dtype == torch.int64
        assert torch.equal(tokens.kept, tokens.keep.sum(2))
        assert tokens.ponder.shape == (3, config.n_tokens)
        assert not (tokens.keep[:, 1:] & ~tokens.keep[:, :-1]).any(), "a token came back"
        assert 0 <= tokens.halting.min() <= tokens.halting.max() <= 1
        assert not tokens.keep.all(), "no token halts, so nothing is tested here"
    case.loss(model, output).backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.shape == parameter.shape
    assert model.n_parameters() == sum(p.numel() for p in {*model.parameters()})


def test_auxiliary_losses_are_finite_and_have_gradients(case: Any) -> None:
    model = case.model().train()
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for progress, n in ((0.0, 5), (0.4, 1), (1.0, 5)):
        model.set_progress(progress)
        assert all(isinstance(value, float) for value in model.schedule_state().values())
        for name, loss in model.auxiliary_losses(model(*case.batch(n).inputs)).items():
            assert loss.shape == ()
            assert torch.isfinite(loss), name
            if not loss.requires_grad:
                assert loss == 0 or len(learning) < len(list(model.parameters())), name
                continue
            found = torch.autograd.grad(loss, learning, retain_graph=True, allow_unused=True)
            assert all(torch.isfinite(part).all() for part in found if part is not None), name


def test_every_parameter_learns_in_training(case: Any) -> None:
    model = case.model().train()
    model.set_progress(0.3)
    case.loss(model, model(*case.batch(12).inputs)).backward()
    silent = unused(case)
    for name, parameter in model.named_parameters():
        if any(part in name for part in silent) or not parameter.requires_grad:
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def unused(case: Any) -> tuple[str, ...]:
    """Parts of the names of parameters that have no say in this configuration."""
    config = case.config
    if getattr(config, "mixer", "") == "identity" and not case.reads_texts:
        return tuple(f"blocks.{i}.norm1." for i in config.replace)  # kept as the teacher's
    if getattr(config, "gate", "") in {"probability", "normalised"}:
        return ("budget_in", "budget_out")  # these weigh heads whatever the budget is
    return ()


def test_an_input_does_not_depend_on_its_batch(case: Any) -> None:
    model = case.model().eval()
    if case.is_random(model):
        pytest.skip("draws its heads at random, so an input alone gets other heads")
    batch = case.batch(6)
    together = case.run(model, batch)
    for row in range(6):
        with torch.no_grad():
            alone = model(*one_row(batch, row))
        assert apart(alone.logits[0], together.logits[row]) <= case.tolerance(together.logits)
        if together.work is not None:
            assert torch.equal(alone.work[0], together.work[row])


def test_same_seed_same_bits(case: Any) -> None:
    inputs = case.batch(4).inputs
    outputs = []
    for seed in (3, 3, 4):
        model = case.fresh(seed).train()
        model.set_progress(0.2)
        torch.manual_seed(seed)
        outputs.append(model(*inputs).logits)
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_eval_repeats_after_reseed(case: Any) -> None:
    model = case.model().eval()
    first = case.run(model, case.batch(5)).logits
    torch.manual_seed(123)
    assert torch.equal(first, case.run(model, case.batch(5)).logits)


def test_state_dict_round_trip(case: Any) -> None:
    first, second = case.model().eval(), case.fresh(1).eval()
    batch = case.batch(5)
    expected = case.run(first, batch).logits
    assert not torch.equal(expected, case.run(second, batch).logits)
    second.load_state_dict(first.state_dict())
    assert torch.equal(expected, case.run(second, batch).logits)
    assert torch.equal(expected, case.run(copy.deepcopy(first), batch).logits)


def test_the_plain_twin_agrees(case: Any) -> None:
    model = case.model().eval()
    batch = case.batch(6)
    fast = case.run(model, batch)
    model.plain_attention = True
    plain = case.run(model, batch)
    assert apart(plain.logits, fast.logits) <= case.tolerance(fast.logits)
    if fast.work is not None:
        assert torch.equal(plain.work, fast.work)


def test_heads_left_out_are_heads_weighted_with_nothing(case: Any) -> None:
    model = case.model().eval()
    batch = case.batch(6)
    hard = case.run(model, batch)
    model.head_mode = "masked"
    masked = case.run(model, batch)
    assert apart(masked.logits, hard.logits) <= case.tolerance(hard.logits)
    assert (hard.heads is None) == (masked.heads is None)
    if hard.heads is not None:
        assert torch.equal(hard.heads.selected, masked.heads.selected)
