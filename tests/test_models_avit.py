"""A-ViT against a token-by-token reading of its rules, and dropped tokens against masked ones."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from models.avit import AViT
from models.avit_config import AViTConfig
from models.interface import ClassifierOutput, TokenDecisions
from models.mixers.interface import TokenMixer
from models.token_halting import prior_divergence
from models.vit import ViT
from models.vit_config import ViTConfig

SIZES: dict[str, Any] = {
    "depth": 4,
    "d_model": 12,
    "n_heads": 2,
    "d_ff": 20,
    "patch_size": 4,
    "max_length": 12,
    "n_classes": 3,
    "channels": 1,
    "dropout": 0.0,
}
MODES = ("s2s", "avit2022")
TOKENS = 10
BATCH = 4


def make(mode: str = "s2s", centre: float = 1.0, **changes: Any) -> AViT:
    """With random weights under which tokens halt in different layers."""
    torch.manual_seed(0)
    model = AViT(AViTConfig(**{"gate_scale": 3.0} | SIZES | changes, mode=mode)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.25)
    model.gate_center.fill_(centre)
    return model


def images(batch: int = BATCH, seed: int = 1) -> Tensor:
    return torch.randn(batch, 1, 12, 12, generator=torch.Generator().manual_seed(seed))


def blocks_of(model: ViT) -> Any:
    return model.blocks


def tokens_of(output: ClassifierOutput) -> TokenDecisions:
    assert output.tokens is not None
    return output.tokens


def masked(model: AViT, pixel_values: Tensor, keep: Tensor | None = None) -> ClassifierOutput:
    """The output of the masked computation in eval mode."""
    model.packed = False
    try:
        found: ClassifierOutput = model(pixel_values, keep=keep)
        return found
    finally:
        model.packed = True


def linear(x: Tensor, module: Any) -> Tensor:
    return x @ module.weight.T + module.bias


def norm(x: Tensor, module: Any) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], module.weight, module.bias, 1e-6)


class Read:
    """One image through A-ViT, from the rules as they are written down: token by token.

    Attributes:
        logits: (n_classes,).
        keep: per layer and token, whether it was computed.
        scores: per layer and token, h of every token, halted or not.
        rho: per token.
    """

    def __init__(self, model: AViT, image: Tensor, *, class_stays: bool) -> None:
        config = model.config
        x = model.patch_embed(image[None])[0]
        x = torch.cat((model.cls_token[0], x)) + model.pos_embed[0]
        n = len(x)
        total, left = [torch.zeros(())] * n, [torch.ones(())] * n
        self.rho = [torch.zeros(())] * n
        halted = [False] * n
        alive = [True] * n
        out = torch.zeros(config.d_model)
        self.keep: list[list[bool]] = []
        self.scores: list[Tensor] = []
        for depth, block in enumerate(model.blocks):
            shown = torch.tensor(alive, dtype=torch.float32)[:, None]
            x = x.clone()
            x.data = x.data * shown  # autograd does not see it
            x = self.block(block, x, shown, config)
            centres = [model.gate_center[min(k, 1)] for k in range(n)]
            h = [
                torch.sigmoid(t[0] * config.gate_scale - c) for t, c in zip(x, centres, strict=True)
            ]
            self.scores.append(torch.stack(h))
            self.keep.append(list(alive))
            if depth == config.depth - 1:
                h = [torch.ones(())] * n
            for k in range(n):
                total[k] = total[k] + h[k]
                if not alive[k]:
                    continue
                self.rho[k] = self.rho[k] + 1
                if k == 0 and class_stays and total[0] > 0.99 and depth < config.depth - 1:
                    continue  # its remainder waits for the last layer
                if total[k] > 0.99:
                    out = out + left[k] * x[k] if k == 0 else out
                    self.rho[k] = self.rho[k] + left[k]
                    halted[k] = True
                elif total[k] < 0.99:
                    out = out + h[k] * x[k] if k == 0 else out
                    left[k] = left[k] - h[k]
            alive = [not stop for stop in halted]
        self.logits = linear(norm(out, model.norm), model.head)

    @staticmethod
    def block(block: Any, x: Tensor, shown: Tensor, config: AViTConfig) -> Tensor:
        qkv = linear(norm(x * shown, block.norm1) * shown, block.attn.qkv)
        width = config.width_of_head
        heads = []
        for head in range(config.n_heads):
            q, k, v = (part[:, head * width : (head + 1) * width] for part in qkv.chunk(3, 1))
            weights = torch.softmax(q @ k.T / math.sqrt(width) - 1000 * (1 - shown.T), 1)
            heads.append(weights @ v)
        x = x + linear(torch.cat(heads, 1), block.attn.proj)
        hidden = functional.gelu(linear(norm(x * shown, block.norm2) * shown, block.mlp.fc1))
        return x + linear(hidden, block.mlp.fc2)


def prior_by_hand(model: AViT, read: list[Read], mode: str) -> Tensor:
    """The prior's divergence from the scores of all images."""
    scores = torch.stack([torch.stack(one.scores) for one in read])
    counted = scores[:, :, 1:] if mode == "s2s" else scores[1:]
    depth = model.config.depth
    mean = torch.stack([counted[:, layer].mean() for layer in range(depth)])
    share = torch.clamp(mean / mean.sum(), 0.01, 0.99)
    if mode == "s2s":
        share = share / share.sum()
    parts = [
        t * (math.log(t) - torch.log(s)) for t, s in zip(model.config.prior, share, strict=True)
    ]
    return torch.stack(parts).sum() / depth


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("centre", [-2.0, -0.5, 1.0])
def test_values_and_gradients_are_those_of_the_rules(mode: str, centre: float) -> None:
    apart = 1.0 if mode == "s2s" else 0.0
    model = make(mode, centre).train()
    model.gate_center[0] += apart
    labels = torch.tensor([0, 1, 2, 0])
    output = model(images())
    decided = tokens_of(output)
    weight = 1.0 if mode == "avit2022" else 0.1
    losses = model.auxiliary_losses(output)
    (functional.cross_entropy(output.logits, labels) + 1e3 * sum(losses.values())).backward()
    ours = {name: parameter.grad for name, parameter in model.named_parameters()}

    twin = make(mode, centre)
    twin.gate_center[0] += apart
    read = [Read(twin, image, class_stays=mode == "s2s") for image in images()]
    keep = torch.tensor([one.keep for one in read])
    rho = torch.stack([torch.stack(one.rho) for one in read])
    prior = prior_by_hand(twin, read, mode).clamp(min=0.0)
    loss = functional.cross_entropy(torch.stack([one.logits for one in read]), labels)
    (loss + 1e3 * weight * (5e-4 * rho.mean() + 1e-3 * prior)).backward()

    assert torch.equal(decided.keep, keep)
    assert 0.3 < keep.float().mean() < 0.97, "this centre halts some tokens and not all"
    torch.testing.assert_close(
        output.logits, torch.stack([one.logits for one in read]), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(decided.ponder, rho, rtol=1e-5, atol=1e-5)
    scores = torch.stack([torch.stack(one.scores) for one in read])
    torch.testing.assert_close(decided.halting, scores, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(losses["ponder"], weight * 5e-4 * rho.mean())
    torch.testing.assert_close(losses["prior"], weight * 1e-3 * prior)
    for name, parameter in twin.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-3, atol=2e-4, msg=name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("centre", [-30.0, -1.0, 1.0, 3.0, 30.0])
def test_dropped_tokens_equal_masked_ones(mode: str, centre: float) -> None:
    model = make(mode, centre)
    expected, found = masked(model, images(9)), model(images(9))
    want, got = tokens_of(expected), tokens_of(found)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-5)
    assert torch.equal(got.keep, want.keep)
    assert torch.equal(got.kept, want.keep.sum(2))
    torch.testing.assert_close(got.ponder, want.ponder, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got.halting, want.halting * want.keep, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_dropped_tokens_equal_those_of_masked_ones(mode: str) -> None:
    gradients = []
    for run in (masked, AViT.__call__):
        model = make(mode)
        output = run(model, images())
        (output.logits.square().sum() + tokens_of(output).ponder.sum()).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


class MeanOfEarlier(TokenMixer):
    """A mixer whose outputs depend on the order of the tokens, and on what lies at padding."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(12, 12)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        mixed = x.cumsum(1) / torch.arange(1, x.shape[1] + 1).unsqueeze(1)
        if key_padding_mask is None:
            return mixed
        return mixed.masked_fill(key_padding_mask.unsqueeze(2), 0.0)


class Nothing(TokenMixer):
    """Adds nothing, and has no output projection."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        del key_padding_mask
        return torch.zeros_like(x)


def with_other_mixers(model: AViT) -> AViT:
    torch.manual_seed(1)
    blocks_of(model)[1].attn = MeanOfEarlier()
    blocks_of(model)[2].attn = Nothing()
    return model


@st.composite
def last_layers(draw: st.DrawFn, least: int) -> list[list[int]]:
    """For each token of each image, in how many layers it is computed."""
    row = st.lists(st.integers(least, 4), min_size=TOKENS, max_size=TOKENS)
    return draw(st.lists(row, min_size=1, max_size=4))


def keep_of(ages: list[list[int]], mode: str) -> Tensor:
    keep = torch.tensor(ages)[:, None] > torch.arange(4)[None, :, None]
    if mode == "s2s":
        keep[:, :, 0] = True
    return keep


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other_mixers", [False, True])
@settings(max_examples=15)
@given(ages=last_layers(least=0))
def test_forced_masks_drop_what_they_mask(
    mode: str, other_mixers: bool, ages: list[list[int]]
) -> None:
    model = make(mode, centre=2.0)
    if other_mixers:
        with_other_mixers(model)
    for mixer in model.mixers():
        mixer.capture = True
    keep, pixels = keep_of(ages, mode), images(len(ages))
    with torch.no_grad():
        expected = masked(model, pixels, keep)
        heads = [mixer.captured for mixer in model.mixers()]
        found = model(pixels, keep=keep)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(tokens_of(found).keep, keep)
    torch.testing.assert_close(tokens_of(found).ponder, tokens_of(expected).ponder)
    for layer, (mixer, before) in enumerate(zip(model.mixers(), heads, strict=True)):
        assert (before is None) == (mixer.captured is None) == isinstance(mixer, Nothing)
        if before is not None:
            torch.testing.assert_close(mixer.captured, before, rtol=1e-4, atol=1e-5)
            assert not before[~keep[:, layer]].any()


@pytest.mark.parametrize("mode", MODES)
def test_a_mixer_sees_kept_tokens_as_if_there_were_no_others(mode: str) -> None:
    """Dropping a token from the first layer on is the same as never having had it."""
    model = with_other_mixers(make(mode))
    keep = keep_of([[4, 0, 4, 4, 0, 0, 4, 4, 0, 4]], mode)
    few = make(mode)
    with torch.no_grad():
        mixed: list[Tensor] = []
        blocks_of(model)[1].attn.proj.register_forward_pre_hook(lambda _, a: mixed.append(a[0]))
        model(images(1), keep=keep)
        x = few._embed(images(1))[:, keep[0, 0]]
        x = blocks_of(few)[0](x)
        second = blocks_of(model)[1]
        expected = second.attn.heads(second.norm1(x))
    torch.testing.assert_close(mixed[0], expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_its_own_masks_forced_change_nothing(mode: str) -> None:
    model = make(mode)
    for run in (masked, AViT.__call__):
        own = run(model, images())
        forced = run(model, images(), keep=tokens_of(own).keep)
        assert torch.equal(forced.logits, own.logits)
        assert torch.equal(tokens_of(forced).ponder, tokens_of(own).ponder)


def test_the_modes_differ_in_the_class_token() -> None:
    stays, halts = (tokens_of(make(mode)(images())) for mode in MODES)
    assert stays.keep[:, :, 0].all()
    assert not halts.keep[:, :, 0].all()
    # computed in all four layers, and its remainder counted once
    assert ((stays.ponder[:, 0] >= 4.0) & (stays.ponder[:, 0] <= 5.0)).all()


def test_every_layer_has_a_say_where_the_class_token_stays() -> None:
    """However early the class token's scores reach 1, the last layer is part of the output."""
    model = make("s2s", centre=-30.0)
    model.gate_center[0] = 2.0
    before = model(images()).logits
    with torch.no_grad():
        blocks_of(model)[3].mlp.fc2.bias.add_(torch.arange(12.0))
    assert (model(images()).logits - before).abs().max() > 0.01
    assert tokens_of(model(images())).keep[:, 1:, 1:].logical_not().all(), "patches halt at once"


def test_the_output_of_the_class_token_sums_to_one() -> None:
    """With every layer's class token alike, the mean field is that token, in both modes."""
    for mode in MODES:
        model = make(mode, centre=0.5)
        with torch.no_grad():
            for block in blocks_of(model):
                block.attn.proj.weight.zero_()
                block.attn.proj.bias.zero_()
                block.mlp.fc2.weight.zero_()
                block.mlp.fc2.bias.zero_()
            first = model.cls_token[:, 0] + model.pos_embed[:, 0]
            expected = model.head(model.norm(first)).expand(BATCH, -1)
            torch.testing.assert_close(model(images()).logits, expected)


@pytest.mark.parametrize("mode", MODES)
def test_halted_tokens_cost_nothing(mode: str) -> None:
    from benchmarks.data.batches import ImageBatch
    from benchmarks.meters.flop_handlers import count_by_dispatch, count_with_fvcore

    model = make(mode)
    kept = tokens_of(model(images())).kept
    assert len(kept.unique()) > 3
    formula = [model.config.macs(12, row).total for row in kept.tolist()]
    whole = model.config.macs(12).total
    assert min(formula) < whole == ViTConfig(**SIZES).macs(12).total
    labels = torch.zeros(BATCH, dtype=torch.int64)
    for row, expected in enumerate(formula):
        one = ImageBatch(images()[row : row + 1], labels[:1], labels[:1])
        assert count_with_fvcore(model, one).macs == expected
        model.plain_attention = True
        assert count_by_dispatch(model, one).macs == expected
        model.plain_attention = False
    model.plain_attention = True
    batch = ImageBatch(images(), labels, labels)
    assert count_by_dispatch(model, batch).macs == sum(formula), "no padding between images"


def test_a_centre_far_above_every_score_halts_nothing() -> None:
    model, plain = make(keep_ratio=1.0), ViT(ViTConfig(**SIZES)).eval()
    state = {name: t for name, t in model.state_dict().items() if name != "gate_center"}
    plain.start_from(state)
    assert model.calibrate([images()]) == 1.0
    with torch.no_grad():
        for run in (masked, AViT.__call__):
            torch.testing.assert_close(
                run(model, images()).logits, plain(images()).logits, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.7, 0.95])
def test_calibration_reaches_the_wanted_ratio(mode: str, ratio: float) -> None:
    model = make(mode, keep_ratio=ratio).train()
    batches = [images(40), images(20, seed=2)]
    reached = model.calibrate(batches)
    assert model.training
    model.eval()
    with torch.no_grad():
        kept = torch.cat([tokens_of(model(part)).keep[:, :, 1:] for part in batches])
    assert kept.float().mean().item() == pytest.approx(reached, abs=1e-6)
    assert reached == pytest.approx(ratio, abs=0.01)
    again = make(mode, keep_ratio=ratio)
    assert again.calibrate(batches) == reached
    assert torch.equal(again.gate_center, model.gate_center)


def test_calibration_leaves_the_class_token_to_the_last_layer() -> None:
    stays, halts = (make(mode, keep_ratio=0.4) for mode in MODES)
    for model in (stays, halts):
        model.calibrate([images(40)])
    assert stays.gate_center[0] > stays.gate_center[1] + 3
    assert halts.gate_center[0] == halts.gate_center[1]
    before_last = tokens_of(stays(images(40))).halting[:, :-1, 0].sum(1)
    assert 0 < before_last.mean() < 0.1
    everything = torch.ones(40, 4, TOKENS, dtype=torch.bool)
    highest = tokens_of(stays(images(40), keep=everything)).halting[:, :, 0].max()
    # so that all layers together stay below a tenth
    assert highest.item() == pytest.approx(1 / (1 + 10 * 4), rel=1e-3)


def test_calibration_needs_images() -> None:
    with pytest.raises(ValueError, match="calibration needs images"):
        make().calibrate([])


def test_a_trained_vit_is_where_it_starts() -> None:
    trained, model = ViT(ViTConfig(**SIZES)), make(centre=7.0)
    model.start_from(trained.state_dict())
    for name, tensor in trained.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)
    assert model.gate_center.tolist() == [7.0, 7.0]
    other = ViT(ViTConfig(**SIZES | {"d_ff": 24}))
    with pytest.raises(ValueError, match=r"mlp\.fc1\.weight is \(24, 12\) .* needs \(20, 12\)"):
        model.start_from(other.state_dict())


def test_the_centre_is_kept_with_the_weights() -> None:
    model, other = make(centre=2.5), make(centre=0.0)
    other.load_state_dict(model.state_dict())
    assert other.gate_center.tolist() == [2.5, 2.5]
    assert torch.equal(other(images()).logits, model(images()).logits)


def test_the_prior_is_nvidias() -> None:
    prior = AViTConfig(depth=12).prior
    listed = [0, 0, 0, 0, 0.0004, 0.0145, 0.1761, 0.7890, 1.3009, 0.7890, 0.1761, 0.0145]
    assert prior == pytest.approx(listed, abs=1e-4)
    assert sum(prior[:8]) == pytest.approx(0.98)
    assert sum(prior) == pytest.approx(3.26, abs=0.005)
    for config, centre in ((AViTConfig(depth=8), 5), (AViTConfig(depth=8, prior_layer=3), 3)):
        assert config.prior.index(max(config.prior)) == centre


def test_one_image_alone_leaves_nvidias_prior_out() -> None:
    halting = torch.full((1, 4, TOKENS), 0.5, requires_grad=True)
    prior = AViTConfig(**SIZES).prior
    assert prior_divergence(halting, prior, s2s=False) == 0
    assert prior_divergence(halting, prior, s2s=True) > 0


@pytest.mark.parametrize("s2s", [True, False])
def test_shares_are_clamped_and_only_then_made_to_sum_to_one(*, s2s: bool) -> None:
    prior = (0.2, 0.2, 0.5, 0.1)
    halting = torch.tensor([0.001, 0.3, 0.6, 0.099]).view(1, 4, 1).repeat(2, 1, TOKENS)
    total = 0.01 + 0.3 + 0.6 + 0.099 if s2s else 1.0
    shares = [share / total for share in (0.01, 0.3, 0.6, 0.099)]
    parts = [t * math.log(t / share) for t, share in zip(prior, shares, strict=True)]
    found = prior_divergence(halting, prior, s2s=s2s).item()
    assert found == pytest.approx(sum(parts) / 4, rel=1e-5)


def test_weights_of_the_losses_are_the_modes_or_the_given() -> None:
    output = make().train()(images())
    base = make().auxiliary_losses(output)
    given = make(halting_weight=0.5, ponder_weight=1e-3).auxiliary_losses(output)
    torch.testing.assert_close(given["ponder"], 10 * base["ponder"])
    torch.testing.assert_close(given["prior"], 5 * base["prior"])


def test_every_parameter_learns() -> None:
    model = make(layer_scale=True).train()
    output = model(images(12))
    loss = output.logits.square().sum() + sum(model.auxiliary_losses(output).values())
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keep_ratio": 0.0}, r"keep_ratio must lie in \(0, 1\], not 0.0"),
        ({"keep_ratio": 1.2}, r"keep_ratio must lie in \(0, 1\], not 1.2"),
        ({"keep_ratio": 0.2}, r"keep_ratio = 0.2 cannot be reached with depth = 4: .* 0.25"),
        ({"mode": "2022"}, "mode must be 's2s' or 'avit2022', not '2022'"),
        ({"gate_scale": 0.0}, "gate_scale must be positive, not 0.0"),
        ({"ponder_weight": -1.0}, "ponder_weight must not be negative, not -1.0"),
        ({"halting_weight": -1.0}, "halting_weight must not be negative, not -1.0"),
        ({"prior_layer": 4}, r"prior_layer must lie in 1..3 \(depth = 4\), not 4"),
        ({"finetune_epochs": -1}, "finetune_epochs must not be negative, not -1"),
    ],
)
def test_values_that_cannot_be_are_one_clear_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AViTConfig(**SIZES | change)


def test_masks_that_cannot_be_are_one_clear_error() -> None:
    model = make()
    keep = torch.ones(BATCH, 4, TOKENS, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"a bool tensor \(4, 4, 10\) .*, not torch.float32"):
        model(images(), keep=keep.float())
    with pytest.raises(ValueError, match=r"not torch.bool \(4, 4, 9\)"):
        model(images(), keep=keep[:, :, 1:])
    back = keep.clone()
    back[0, 1, 3] = False
    with pytest.raises(ValueError, match="brings a token back"):
        model(images(), keep=back)
    without = keep.clone()
    without[1, 3, 0] = False
    with pytest.raises(ValueError, match="drops the class token"):
        model(images(), keep=without)
    assert make("avit2022")(images(), keep=without).logits.isfinite().all()


def test_it_is_trained_for_epochs_of_its_own() -> None:
    assert AViTConfig(finetune_epochs=3).training_epochs(50) == 3
    assert "pretrained" not in AViTConfig.declarable()
    assert AViTConfig.base == "weights"


def test_the_ratio_that_calibration_reached_is_told() -> None:
    model = make("s2s", keep_ratio=0.6)
    assert model.schedule_state() == {}
    reached = model.calibrate([images(batch=6)])
    assert model.schedule_state() == {"calibrated_keep_ratio": reached}
