"""BERT against transformers' with the same weights, and head budgets on top of pretrained heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from models.bert import Bert
from models.bert_budgetformer import BertBudgetFormer
from models.bert_budgetformer_config import BertBudgetFormerConfig
from models.bert_config import BertConfig
from models.budgetformer import BudgetAttention
from models.interface import Classifier

SIZES: dict[str, Any] = {
    "depth": 3,
    "d_model": 32,
    "n_heads": 4,
    "d_ff": 48,
    "vocab_size": 50,
    "n_classes": 3,
    "max_length": 12,
    "n_segments": 2,
}


def random_state(positions: int = 20, **changes: int) -> dict[str, Tensor]:
    """Tensors by transformers' names, far enough from zero that each of them counts."""
    sizes = SIZES | changes
    d, ff = sizes["d_model"], sizes["d_ff"]
    generator = torch.Generator().manual_seed(5)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (sizes["vocab_size"], d),
        "embeddings.position_embeddings.weight": (positions, d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for index in range(sizes["depth"]):
        layer = f"encoder.layer.{index}."
        for name, out, width in (
            ("attention.self.query", d, d),
            ("attention.self.key", d, d),
            ("attention.self.value", d, d),
            ("attention.output.dense", d, d),
            ("intermediate.dense", ff, d),
            ("output.dense", d, ff),
        ):
            shapes[f"{layer}{name}.weight"] = (out, width)
            shapes[f"{layer}{name}.bias"] = (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}{name}.weight"] = shapes[f"{layer}{name}.bias"] = (d,)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def hidden_states(model: Classifier, batch: dict[str, Tensor]) -> list[Tensor]:
    """The embeddings and each block's output."""
    seen: list[Tensor] = []
    hooks = [block.register_forward_hook(lambda *a: seen.append(a[2][0])) for block in model.blocks]  # type: ignore[union-attr]
    hooks.append(model.norm.register_forward_hook(lambda *a: seen.append(a[2])))  # type: ignore[union-attr, operator]
    with torch.no_grad():
        model.eval()(**batch)
    for hook in hooks:
        hook.remove()
    return seen


def batch_of(lengths: tuple[int, ...] = (12, 7, 1), *, pairs: bool = True) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    shape = (len(lengths), max(lengths))
    mask = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    batch = {
        "input_ids": torch.randint(0, 50, shape, generator=generator).masked_fill(mask, 0),
        "key_padding_mask": mask,
    }
    if pairs:
        batch["segment_ids"] = (torch.arange(max(lengths)) > 4).long().expand(shape)
    return batch


@pytest.mark.parametrize("pairs", [True, False])
def test_hidden_states_are_those_of_transformers(pairs: bool) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="the independent BERT to compare with"
    )
    other = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=48,
            max_position_embeddings=20,
        ),
        add_pooling_layer=False,
    ).eval()
    state = random_state()
    other.load_state_dict(state)
    model = Bert(BertConfig(**SIZES | {"n_segments": 1 + pairs}))
    model.load_pretrained(state)
    batch = batch_of(pairs=pairs)
    with torch.no_grad():
        expected = other(
            input_ids=batch["input_ids"],
            attention_mask=(~batch["key_padding_mask"]).long(),
            token_type_ids=batch.get("segment_ids"),
            output_hidden_states=True,
        ).hidden_states
    found = hidden_states(model, batch)
    kept = ~batch["key_padding_mask"]
    assert len(found) == len(expected) == 4
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours[kept], theirs[kept], rtol=0, atol=1e-5)


def pair_of_models(**changes: Any) -> tuple[Bert, BertBudgetFormer]:
    dense = Bert(BertConfig(**SIZES | changes)).eval()
    adaptive = BertBudgetFormer(BertBudgetFormerConfig(**SIZES | changes, fixed_k=4)).eval()
    missing = adaptive.load_state_dict(dense.state_dict(), strict=False)
    assert not missing.unexpected_keys
    assert all(".controller." in name for name in missing.missing_keys)
    return dense, adaptive


@pytest.mark.parametrize("mode", ["hard", "masked"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_with_every_head_selected_nothing_changes(mode: Any, pooling: str) -> None:
    dense, adaptive = pair_of_models(pooling=pooling)
    adaptive.head_mode = mode
    for batch in (batch_of(), batch_of((9, 9))):
        with torch.no_grad():
            output = adaptive(**batch)
            assert torch.equal(output.logits, dense(**batch).logits)
        assert output.heads is not None
        assert output.heads.selected.all()


def test_the_fast_path_equals_masked_heads() -> None:
    torch.manual_seed(0)
    _, adaptive = pair_of_models()
    state = random_state()
    adaptive.load_pretrained({name: 0.3 * tensor for name, tensor in state.items()})
    for block in adaptive.blocks:
        assert isinstance(block.attention, BudgetAttention)
        block.attention.fixed_k = None
        torch.nn.init.normal_(block.attention.controller.budget_out.weight, std=8.0)
    batch = batch_of((12, 7, 1, 12, 12, 5))
    with torch.no_grad():
        hard = adaptive(**batch)
        adaptive.head_mode = "masked"
        masked = adaptive(**batch)
    assert len(hard.heads.k.unique()) > 1
    torch.testing.assert_close(hard.logits, masked.logits, rtol=1e-5, atol=1e-5)


def test_the_first_token_is_pooled_where_asked() -> None:
    model = Bert(BertConfig(**SIZES, pooling="cls")).eval()
    batch = batch_of((5, 3))
    states = hidden_states(model, batch)
    with torch.no_grad():
        assert torch.equal(model(**batch).logits, model.head(states[-1][:, 0]))
    with pytest.raises(ValueError, match="pooling must be 'mean' or 'cls', not 'max'"):
        BertConfig(**SIZES, pooling="max")  # type: ignore[arg-type]


def test_a_prefix_and_the_tensors_of_other_heads_are_accepted() -> None:
    plain, named = Bert(BertConfig(**SIZES)), Bert(BertConfig(**SIZES))
    named.load_state_dict(plain.state_dict())
    state = random_state()
    plain.load_pretrained(state)
    more = {"bert.pooler.dense.weight": torch.zeros(2), "cls.predictions.bias": torch.zeros(3)}
    named.load_pretrained({f"bert.{name}": tensor for name, tensor in state.items()} | more)
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, named.state_dict()[name]), name
    assert torch.equal(
        plain.position.weight, state["embeddings.position_embeddings.weight"][:12]
    ), "the first rows of a longer table"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 40}, r"word_embeddings.weight is \(40, 32\) in .*needs \(50, 32\)"),
        (
            {"positions": 8},
            r"position_embeddings.weight is \(8, 32\) in .*needs at least \(12, 32\)",
        ),
        ({"d_ff": 64}, r"layer.0.intermediate.dense.weight is \(64, 32\) in .*needs \(48, 32\)"),
        ({"d_model": 16}, r"word_embeddings.weight is \(50, 16\) in .*needs \(50, 32\)"),
        ({"depth": 2}, r"have no encoder.layer.2.attention.self.query.weight.*\(32, 32\)"),
        ({"depth": 4}, r"encoder.layer.3.attention.self.query.weight \(32, 32\) .*depth 3"),
    ],
)
def test_the_first_tensor_that_does_not_fit_is_named(changes: dict[str, int], message: str) -> None:
    model = Bert(BertConfig(**SIZES))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        model.load_pretrained(random_state(**changes))
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), "nothing is half loaded"


def test_pretrained_heads_leave_head_and_controllers_fresh() -> None:
    config = BertBudgetFormerConfig(**SIZES)
    torch.manual_seed(0)
    model = BertBudgetFormer(config)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_pretrained(random_state())
    same = {
        name for name, tensor in model.state_dict().items() if torch.equal(tensor, before[name])
    }
    assert same == {n for n in before if ".controller." in n or n.startswith("head.")}


def test_controllers_see_the_masked_mean_of_the_layers_input() -> None:
    _, adaptive = pair_of_models()
    layer = adaptive.blocks[0].attention
    assert isinstance(layer, BudgetAttention)
    seen: list[Tensor] = []
    layer.controller.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    states = hidden_states(adaptive, batch_of((3,), pairs=False))
    torch.testing.assert_close(seen[0], states[0].mean(1))


def test_a_model_without_a_pretrained_start_says_so() -> None:
    from models.dense import Dense
    from models.dense_config import DenseConfig

    with pytest.raises(ValueError, match="Dense cannot start from pretrained weights"):
        Dense(DenseConfig(depth=1, d_model=8, n_heads=2)).load_pretrained({})
