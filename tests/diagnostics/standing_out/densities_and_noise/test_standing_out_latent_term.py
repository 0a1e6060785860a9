"""Checks the sentences about samples by the variance as the deviation, and about terms that are reduced unequally."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens.records.report import StandingOut

VAE = """\
F, table = nn.functional, torch.rand(64, 12)
enc, dec = nn.Linear(12, 6), nn.Linear(3, 12)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.01)
for step in range(3):
    x = table[torch.randint(0, 64, (16,))]
    mu, lv = enc(x).chunk(2, dim=1)
    {sample}
    out = dec(z)
    {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT_SAMPLE = "std = (0.5 * lv).exp(); z = mu + std * torch.randn_like(std)"
KL = "kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1)\n    "
RIGHT_LOSS = KL + "loss = F.mse_loss(out, x, reduction='sum') / len(x) + kl.mean()"
SAMPLES = {
    "the variance": "std = lv.exp(); z = mu + std * torch.randn_like(std)  #!",
    "half of the variance": "z = torch.randn_like(mu) * (0.5 * lv.exp()) + mu  #!",
    "the logarithm": "z = mu + torch.randn_like(mu) * lv  #!",
    "a distribution": "z = torch.distributions.Normal(mu, lv.exp()).rsample()  #!",
}
LOSSES = {
    "the mean of the error": KL + "loss = F.mse_loss(out, x) + kl.mean()  #!",
    "the mean of a cross entropy": KL + "loss = kl.mean() + F.binary_cross_entropy_with_logits(out, x)  #!",
    "the mean of squares": KL + "loss = ((out - x) ** 2).mean() + kl.sum() / len(x)  #!",
    "the mean of the divergence": "kl = -0.5 * torch.mean(1 + lv - mu**2 - lv.exp())\n"
    "    loss = (out - x).square().sum(1).mean() + kl  #!",
}
RIGHT = {
    "sums": (RIGHT_SAMPLE, RIGHT_LOSS),
    "a logarithm of the deviation": (
        "z = mu + lv.exp() * torch.randn_like(lv)",
        "kl = (0.5 * (mu**2 + (2 * lv).exp() - 1) - lv).sum(1)\n    loss = ((out - x) ** 2).sum(1).mean() + kl.mean()",
    ),
    "a weight": (RIGHT_SAMPLE, KL + "loss = F.mse_loss(out, x) + 0.02 * kl.mean()"),
    "two means": (RIGHT_SAMPLE, KL + "loss = F.mse_loss(out, x) + kl.mean() / 12"),
    "a weight that equals the elements": (
        RIGHT_SAMPLE,
        "beta = 1 / 3\n    loss = F.mse_loss(out, x, reduction='sum') - beta * 0.5 * (1 + lv - mu**2 - lv.exp()).sum()",
    ),
    "means of tensors whose sizes have the ratio 2": (
        RIGHT_SAMPLE,
        "out, x = out[:, :6], x[:, :6]\n    loss = F.mse_loss(out, x) - 0.5 * torch.mean(1 + lv - mu**2 - lv.exp())",
    ),
    "half of the error": (RIGHT_SAMPLE, KL + "loss = (0.5 * (out - x) ** 2).sum(1).mean() + 1.0 * kl.mean()"),
}


def _found(folder: Path, body: str) -> list[StandingOut]:
    words = ("scales noise by the variance", "as with equal reductions")
    return [each for each in sentences(folder, body) if any(each_of in each.text for each_of in words)]


@pytest.mark.parametrize("case", SAMPLES)
def test_a_sample_by_the_variance_is_named(tmp_path: Path, case: str) -> None:
    body = VAE.format(sample=SAMPLES[case], loss=RIGHT_LOSS)
    (found,) = _found(tmp_path, body)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("case", LOSSES)
def test_unequal_reductions_are_named(tmp_path: Path, case: str) -> None:
    body = VAE.format(sample=RIGHT_SAMPLE, loss=LOSSES[case])
    (found,) = _found(tmp_path, body)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("case", RIGHT)
def test_other_models_are_left_alone(tmp_path: Path, case: str) -> None:
    sample, loss = RIGHT[case]
    assert [each.text for each in _found(tmp_path, VAE.format(sample=sample, loss=loss))] == []
