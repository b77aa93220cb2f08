"""The Vision Transformer against timm and transformers with the same weights, and its mixer."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models.mixers.attention import Attention
from models.vit import ViT
from models.vit_config import ViTConfig

SIZES: dict[str, Any] = {
    "depth": 3,
    "d_model": 24,
    "n_heads": 3,
    "patch_size": 4,
    "max_length": 16,
    "n_classes": 5,
    "channels": 3,
}


def timm_module() -> Any:
    return pytest.importorskip("timm", reason="the independent ViT to compare with")


def transformers_module() -> Any:
    return pytest.importorskip("transformers", reason="the independent ViT to compare with")


def randomise(model: nn.Module, scale: float = 0.2) -> None:
    """Weights that no equality can hold by accident for: norms, biases and scales differ too."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * scale)


def make(scale: float = 0.2, **changes: Any) -> ViT:
    torch.manual_seed(0)
    model = ViT(ViTConfig(**SIZES | changes)).eval()
    randomise(model, scale)
    return model


def images(side: int = 16, channels: int = 3, batch: int = 3) -> Tensor:
    return torch.randn(batch, channels, side, side, generator=torch.Generator().manual_seed(1))


def block_outputs(model: ViT, pixel_values: Tensor) -> tuple[list[Tensor], Tensor]:
    seen: list[Tensor] = []
    hooks = [block.register_forward_hook(lambda *a: seen.append(a[2])) for block in model.blocks]
    with torch.no_grad():
        logits = model(pixel_values).logits
    for hook in hooks:
        hook.remove()
    return seen, logits


@pytest.mark.parametrize("layer_scale", [False, True])
def test_blocks_and_logits_are_those_of_timm(layer_scale: bool) -> None:
    other = (
        timm_module()
        .models.VisionTransformer(
            img_size=16,
            patch_size=4,
            embed_dim=24,
            depth=3,
            num_heads=3,
            num_classes=5,
            init_values=0.5 if layer_scale else None,
        )
        .eval()
    )
    randomise(other)
    model = ViT(ViTConfig(**SIZES, layer_scale=layer_scale)).eval()
    model.load_state_dict(other.state_dict())
    ours, logits = block_outputs(model, images())
    theirs, expected = [], []
    for block in other.blocks:
        block.register_forward_hook(lambda *a: theirs.append(a[2]))
    with torch.no_grad():
        expected = other(images())
    assert len(ours) == len(theirs) == 3
    for mine, its in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("size", "width", "heads"), [("tiny", 192, 3), ("small", 384, 6), ("base", 768, 12)]
)
def test_deits_state_dicts_fit_unchanged_and_say_the_same(
    size: str, width: int, heads: int
) -> None:
    torch.manual_seed(0)
    other = timm_module().create_model(f"deit_{size}_patch16_224").eval()
    randomise(other, 0.02)
    config = ViTConfig(
        depth=12, d_model=width, n_heads=heads, patch_size=16, max_length=224, n_classes=1000
    )
    with torch.device("meta"):
        model = ViT(config).eval()
    model.load_state_dict(other.state_dict(), assign=True)
    ours, logits = block_outputs(model, images(224, batch=1))
    theirs: list[Tensor] = []
    for block in other.blocks:
        block.register_forward_hook(lambda *a: theirs.append(a[2]))
    with torch.no_grad():
        expected = other(images(224, batch=1))
    assert len(ours) == len(theirs) == 12
    for mine, its in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-4 * float(its.abs().max()))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_hidden_states_are_those_of_transformers_vit() -> None:
    transformers = transformers_module()
    sizes = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=96,
        image_size=16, patch_size=4, layer_norm_eps=1e-6,
    )  # fmt: skip
    other = transformers.ViTModel(sizes, add_pooling_layer=False).eval()
    randomise(other)
    renamed = {
        re.sub(r"^layers\.(\d+)\.", r"encoder.layer.\1.", name)
        .replace("layernorm_before", "norm1")
        .replace("layernorm_after", "norm2"): tensor
        for name, tensor in other.state_dict().items()
    }
    model = ViT(ViTConfig(**SIZES)).eval()
    model.load_pretrained(on_disk(renamed))
    ours, _ = block_outputs(model, images())
    with torch.no_grad():
        expected = other(images()).last_hidden_state
        found = model.norm(ours[-1])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-5)


def on_disk(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names as checkpoints have them; transformers 5 holds other ones in memory."""
    long = {"q": "query", "k": "key", "v": "value"}
    named = {}
    for name, tensor in state.items():
        new = re.sub(
            r"attention\.([qkv])_proj", lambda m: f"attention.attention.{long[m[1]]}", name
        )
        named[new.replace("attention.o_proj", "attention.output.dense")] = tensor
    return named


def dinov2(**changes: Any) -> tuple[Any, dict[str, Tensor]]:
    """A tiny random model of transformers for images of 24 pixels, and its tensors."""
    transformers = transformers_module()
    other = transformers.Dinov2Model(
        transformers.Dinov2Config(
            hidden_size=24, num_hidden_layers=3, num_attention_heads=3, mlp_ratio=4,
            image_size=24, patch_size=4, **changes,
        )
    ).eval()  # fmt: skip
    randomise(other)
    return other, on_disk(other.state_dict())


@pytest.mark.parametrize("side", [24, 16, 40])
def test_hidden_states_are_those_of_dinov2_at_any_size(side: int) -> None:
    other, state = dinov2()
    model = ViT(ViTConfig(**SIZES | {"max_length": side}, layer_scale=True)).eval()
    head = model.head.weight.clone()
    model.load_pretrained(state)
    ours, _ = block_outputs(model, images(side))
    with torch.no_grad():
        expected = other(images(side)).last_hidden_state
        found = model.norm(ours[-1])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-5)
    assert torch.equal(model.head.weight, head), "the head stays fresh"


def test_grey_images_are_seen_as_three_equal_colours() -> None:
    _, state = dinov2()
    models = [
        ViT(ViTConfig(**SIZES | {"channels": channels}, layer_scale=True)).eval()
        for channels in (1, 3)
    ]
    for model in models:
        model.load_pretrained(state)
    grey = images(channels=1)
    found, _ = block_outputs(models[0], grey)
    expected, _ = block_outputs(models[1], grey.expand(-1, 3, -1, -1))
    torch.testing.assert_close(found[-1], expected[-1], rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 36}, r"cls_token is \(1, 1, 24\) in the weights, .* needs \(1, 1, 36\)"),
        ({"d_ff": 50}, r"blocks\.0\.mlp\.fc1\.weight is \(96, 24\) .* needs \(50, 24\)"),
        ({"patch_size": 8}, r"patch_embed\.proj\.weight is \(24, 3, 4, 4\)"),
        ({"depth": 4}, r"the weights have no blocks\.3\.norm1\.weight, .*\(24,\)"),
        ({"depth": 2}, r"blocks\.2\.\S+ \(.*\) of the weights has no place in the model"),
        ({"layer_scale": False}, r"blocks\.0\.ls1\.gamma \(24,\) of the weights has no place"),
    ],
)
def test_the_first_tensor_that_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    _, state = dinov2()
    model = ViT(ViTConfig(**SIZES | {"layer_scale": True} | change))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        model.load_pretrained(state)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), "nothing is half loaded"


def test_another_trained_vit_is_taken_over_whole() -> None:
    trained, model = make(), ViT(ViTConfig(**SIZES)).eval()
    model.start_from(trained.state_dict())
    with torch.no_grad():
        assert torch.equal(model(images()).logits, trained(images()).logits)
    with pytest.raises(ValueError, match=r"head\.weight is \(5, 24\) .* needs \(7, 24\)"):
        ViT(ViTConfig(**SIZES | {"n_classes": 7})).start_from(trained.state_dict())


@pytest.mark.parametrize("shape", [(2, 3, 20, 20), (2, 1, 16, 16), (2, 3, 16, 12), (3, 16, 16)])
def test_images_of_another_size_are_one_clear_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"the images are \(.*\), but the model takes \(3, 16, 16\)"
    ):
        make()(torch.zeros(shape))


def test_sizes_that_cannot_be_are_one_clear_error() -> None:
    with pytest.raises(ValueError, match="patch_size = 5 does not divide the images' side of 16"):
        ViTConfig(**SIZES | {"patch_size": 5})
    with pytest.raises(ValueError, match="n_heads = 5 does not divide d_model = 24"):
        ViTConfig(**SIZES | {"n_heads": 5})
    config = ViTConfig(**SIZES)
    with pytest.raises(ValueError, match="an image of 18 pixels a side has no whole patches"):
        config.macs(18)
    with pytest.raises(ValueError, match=r"one entry per layer \(3\), not 2"):
        config.macs(16, [1, 2])


@pytest.mark.parametrize(
    "change", [{}, {"layer_scale": True}, {"head_dim": 5}, {"d_ff": 7}, {"channels": 1}]
)
def test_macs_are_what_two_counters_see(change: dict[str, Any]) -> None:
    from benchmarks.data.batches import ImageBatch
    from benchmarks.meters.flop_handlers import count_by_dispatch, count_with_fvcore

    model = make(**change)
    pixels = images(channels=model.config.channels, batch=1)
    batch = ImageBatch(pixels, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    formula = model.config.macs(16).total
    assert count_with_fvcore(model, batch).macs == formula
    model.plain_attention = True
    assert count_by_dispatch(model, batch).macs == formula


def test_every_parameter_learns() -> None:
    model = make(layer_scale=True).train()
    model(images(batch=8)).logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_the_plain_twin_agrees() -> None:
    model = make()
    with torch.no_grad():
        fused = model(images()).logits
        model.plain_attention = True
        assert all(mixer.plain for mixer in model.mixers())
        torch.testing.assert_close(model(images()).logits, fused, rtol=1e-5, atol=1e-5)


def attention(n_heads: int = 2, head_dim: int = 5) -> Attention:
    torch.manual_seed(0)
    return Attention(12, n_heads, head_dim)


def by_hand(layer: Attention, x: Tensor) -> Tensor:
    """The head outputs of one input (tokens, d_model), head by head."""
    parts = (x @ layer.qkv.weight.T + layer.qkv.bias).chunk(3, 1)
    heads = []
    for head in range(layer.n_heads):
        at = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        q, k, v = (part[:, at] for part in parts)
        heads.append(torch.softmax(q @ k.T / layer.head_dim**0.5, 1) @ v)
    return torch.cat(heads, 1)


@pytest.mark.parametrize("plain", [False, True])
def test_attention_leaves_padding_out(plain: bool) -> None:
    layer = attention()
    layer.plain = plain
    layer.capture = True
    x = torch.randn(3, 6, 12, generator=torch.Generator().manual_seed(1))
    lengths = [6, 2, 0]
    mask = torch.arange(6) >= torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad():
        found = layer(x, mask)
        assert layer.captured is not None
        for row, length in enumerate(lengths):
            expected = by_hand(layer, x[row, :length])
            torch.testing.assert_close(layer.captured[row, :length], expected, rtol=1e-5, atol=1e-6)
            assert not layer.captured[row, length:].any()
    assert found.isfinite().all()
    torch.testing.assert_close(found, layer.proj(layer.captured))


@pytest.mark.parametrize("counts", [[3, 3, 3], [4, 0, 1, 7], [0, 0], [5]])
@pytest.mark.parametrize("plain", [False, True])
def test_packed_inputs_are_each_their_own(counts: list[int], plain: bool) -> None:
    layer = attention()
    layer.plain = plain
    rows = torch.randn(sum(counts), 12, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = layer.packed(rows, counts)
        expected = [by_hand(layer, part) for part in rows.split(counts)]
    torch.testing.assert_close(found, torch.cat(expected), rtol=1e-5, atol=1e-6)


def test_head_only_leaves_everything_else_without_gradient() -> None:
    model = ViT(ViTConfig(depth=2, d_model=12, n_heads=3, max_length=8, head_only=True))
    assert {name for name, p in model.named_parameters() if p.requires_grad} == {
        "head.weight",
        "head.bias",
    }
