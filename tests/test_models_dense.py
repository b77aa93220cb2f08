"""The dense encoder against torch's own layers, and the encoder's shared parts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from models.dense import Dense, SelfAttention
from models.dense_config import DenseConfig
from models.encoder import Block
from models.no_attention import NoAttention
from models.no_attention_config import NoAttentionConfig

CONFIG = DenseConfig(
    depth=2, d_model=12, n_heads=3, d_ff=20, vocab_size=30, n_classes=4, max_length=9, dropout=0.0
)


def as_torch_layer(block: Block) -> nn.TransformerEncoderLayer:
    """torch's pre-norm layer with the block's weights."""
    attention = block.attention
    assert isinstance(attention, SelfAttention)
    assert block.attention_norm is not None
    layer = nn.TransformerEncoderLayer(
        CONFIG.d_model,
        CONFIG.n_heads,
        CONFIG.width_of_ffn,
        0.0,
        "gelu",
        batch_first=True,
        norm_first=True,
    ).double()
    by_head = (attention.n_heads, 3, attention.head_dim)
    weight = attention.qkv.weight.view(*by_head, CONFIG.d_model).transpose(0, 1)
    bias = attention.qkv.bias.view(by_head).transpose(0, 1)
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": weight.reshape(-1, CONFIG.d_model),
            "self_attn.in_proj_bias": bias.reshape(-1),
            "self_attn.out_proj.weight": attention.output.weight.t(),
            "self_attn.out_proj.bias": attention.output.bias,
            "linear1.weight": block.ffn_in.weight,
            "linear1.bias": block.ffn_in.bias,
            "linear2.weight": block.ffn_out.weight,
            "linear2.bias": block.ffn_out.bias,
            "norm1.weight": block.attention_norm.weight,
            "norm1.bias": block.attention_norm.bias,
            "norm2.weight": block.ffn_norm.weight,
            "norm2.bias": block.ffn_norm.bias,
        }
    )
    return layer


@pytest.mark.parametrize("plain", [False, True])
def test_agrees_with_torch_encoder_layers(plain: bool) -> None:
    torch.manual_seed(0)
    model = Dense(CONFIG).double()
    model.plain_attention = plain
    for norm in (m for m in model.modules() if isinstance(m, nn.LayerNorm)):
        nn.init.normal_(norm.weight, 1.0, 0.3)
        nn.init.normal_(norm.bias)
    ids = torch.randint(0, 30, (4, 9))
    mask = torch.arange(9) >= torch.tensor([9, 5, 1, 7]).unsqueeze(1)
    x = model.token(ids) + model.position(torch.arange(9))
    for block in model.blocks:
        assert isinstance(block, Block)
        x = as_torch_layer(block)(x, src_key_padding_mask=mask)
    x = model.norm(x)
    kept = ~mask
    pooled = torch.stack([x[i, kept[i]].mean(0) for i in range(4)])
    # float64: sums of some dozens of terms
    torch.testing.assert_close(model(ids, mask).logits, model.head(pooled), rtol=1e-12, atol=1e-12)


def test_plain_attention_agrees_in_gradients() -> None:
    torch.manual_seed(0)
    model = Dense(CONFIG).double()
    ids = torch.randint(0, 30, (3, 9))
    mask = torch.arange(9) >= torch.tensor([9, 5, 1]).unsqueeze(1)
    gradients = []
    for plain in (False, True):
        model.plain_attention = plain
        model.zero_grad()
        model(ids, mask).logits.square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for fused, unfused in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, unfused, rtol=1e-10, atol=1e-12)


def test_unfused_kernel_of_torch_is_counted_alike() -> None:
    model = Dense(CONFIG).eval()
    ids, mask = torch.ones(1, 8, dtype=torch.long), torch.zeros(1, 8, dtype=torch.bool)
    with sdpa_kernel(SDPBackend.MATH), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(ids, mask)
    assert counter.get_total_flops() == 2 * CONFIG.macs(8).total


def test_head_width_may_differ_from_the_share_of_the_model_width() -> None:
    config = DenseConfig(d_model=10, n_heads=3, head_dim=7, vocab_size=20, max_length=5)
    model = Dense(config).eval()
    output = model(torch.ones(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.bool))
    assert output.logits.shape == (2, 2)
    assert config.macs(5).attention_core == 2 * 2 * 5 * 5 * 3 * 7


def test_without_attention_nothing_of_it_remains() -> None:
    model = NoAttention(NoAttentionConfig(vocab_size=20, max_length=5))
    assert not [name for name, _ in model.named_parameters() if "attention" in name]
    assert NoAttentionConfig().macs(10).attention == 0
    assert not {"n_heads", "head_dim"} & NoAttentionConfig.declarable().keys()
    assert NoAttentionConfig().macs(10, [3, 3]) == NoAttentionConfig().macs(10)


def test_missing_segments_are_segment_zero() -> None:
    model = Dense(DenseConfig(vocab_size=20, max_length=5, n_segments=2)).eval()
    ids, mask = torch.ones(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.bool)
    zeros = torch.zeros_like(ids)
    assert torch.equal(model(ids, mask).logits, model(ids, mask, zeros).logits)
    assert not torch.equal(model(ids, mask).logits, model(ids, mask, zeros + 1).logits)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d_model": 10, "n_heads": 4}, "nearest that do: 1, 2, 5"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"dropout": 1.0}, "dropout must lie in"),
    ],
)
def test_impossible_sizes_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DenseConfig(**values)


def test_macs_want_one_k_per_layer() -> None:
    with pytest.raises(ValueError, match="one entry per layer"):
        DenseConfig(depth=2).macs(4, [1])
