"""Checks the sentence about losses that take a standard deviation as the variance."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BANDS = """\
net = nn.Linear(3, 2)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
nll = nn.GaussianNLLLoss()
for _ in range(4):
    x, y = torch.randn(8, 3), torch.randn(8)
    mu, raw = net(x).unbind(1)
    sigma = nn.functional.softplus(raw) + 1e-3
    loss = nn.functional.gaussian_nll_loss(mu, y, sigma)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
print((mu + 1.64 * sigma).mean())
"""
WRONG = {
    "a function": BANDS,
    "a keyword": BANDS.replace("mu, y, sigma)  #!", "mu, y, var=sigma)  #!"),
    "a module": BANDS.replace("nn.functional.gaussian_nll_loss(", "nll("),
}
SHOWN = "print((mu + 1.64 * sigma).mean())"
OTHERS = {
    "a distribution": BANDS.replace(SHOWN, "print(torch.distributions.Normal(mu, sigma).cdf(y))"),
    "a band of a width that is given": BANDS.replace(SHOWN, (
        "for z in (1.0, 2.0):\n    print((mu - z * sigma).mean(), (mu + z * sigma).mean())")),
    "a density": BANDS.replace(SHOWN, "print((-0.5 * ((y - mu) / sigma) ** 2 - sigma.log()).mean())"),
    "a share inside": BANDS.replace(SHOWN, "print(((y - mu).abs() <= 2 * sigma).float().mean())"),
    "a draw": BANDS.replace(SHOWN, "print(torch.normal(mu, sigma).mean())"),
    "a score": BANDS.replace(SHOWN, "print(((y - mu) / sigma).std())"),
    "an item": BANDS.replace("    loss", "    out = {'mean': mu, 'std': sigma}\n    loss").replace(
        "mu, y, sigma)", "out['mean'], y, out['std'].clamp(min=1e-4))"),
}  # fmt: skip
RIGHT = {
    "the mean of a log-normal": BANDS.replace("1.64 * sigma", "0.5 * sigma"),
    "a utility": BANDS.replace("mu + 1.64 * sigma", "mu - 3.0 * sigma"),
    "a divergence": BANDS.replace("1.64 * sigma", "1.64 * sigma - raw").replace("(mu +", "(1.64 * mu**2 +"),
    "an average over steps": BANDS.replace("nll =", "level = torch.ones(8)\nnll =").replace("    opt.step()", (
        "    opt.step()\n    level = 0.9 * level + 0.1 * sigma.detach()")).replace(SHOWN, "print(level.mean())"),
    "the derivative of a density": BANDS.replace(SHOWN, "print(((y - mu) / sigma).abs().mean())"),
    "two values of one helper": BANDS.replace("nn.functional.softplus(raw) + 1e-3", "positive(raw)").replace(
        "nll =", (
        "other = nn.Linear(3, 2)\ndef positive(v):\n    return nn.functional.softplus(v) + 1e-3\nnll =")).replace(
        "    opt.zero", (
        "    m, s = other(x).unbind(1)\n    std = positive(s)\n"
        "    loss = loss - torch.distributions.Normal(m, std).log_prob(y).mean()\n    opt.zero")).replace(
        SHOWN, "print((m + 1.64 * std).mean())"),
    "a distribution of its root": BANDS.replace(SHOWN, "print(torch.distributions.Normal(mu, sigma.sqrt()).cdf(y))"),
    "a distribution of the square": BANDS.replace("mu, y, sigma)", "mu, y, sigma**2)").replace(
        SHOWN, "print(torch.distributions.Normal(mu, sigma).cdf(y))"),
    "squares in a score": BANDS.replace(SHOWN, "print(((y - mu) ** 2 / sigma).mean())"),
    "squared": BANDS.replace("mu, y, sigma)", "mu, y, sigma**2)"),
    "squared by a method": BANDS.replace("mu, y, sigma)", "mu, y, sigma.square())"),
    "differences in units of a scale": BANDS.replace(SHOWN, (
        "fano = (y - mu).abs() / sigma\nprint((fano > 3).float().mean())")).replace("sigma", "scale"),
    "a variance": BANDS.replace("sigma", "var"),
    "its root elsewhere": BANDS.replace("1.64 * sigma)", "1.64 * sigma.sqrt())"),
    "another sigma": BANDS.replace("print((mu + 1.64 * sigma).mean())", (
        "def noisy(x, sigma):\n    return x + 1.64 * sigma\nnoisy(x, torch.tensor(0.1))")),
    "a part of it": BANDS.replace("(mu + 1.64 * sigma)", "(mu * sigma)"),
    "a penalty": BANDS.replace("print((mu + 1.64 * sigma).mean())", "print(loss + (0.01 * sigma).mean())"),
    "no factor": BANDS.replace("print((mu + 1.64 * sigma).mean())", ""),
}  # fmt: skip
WORDS = "as the variance"


@pytest.mark.parametrize("name", WRONG)
def test_a_deviation_as_the_variance_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "the standard deviation that it fits is the square root of `sigma`; `1.64 * sigma` takes" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", OTHERS)
def test_other_uses_of_a_deviation_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OTHERS[name]) if WORDS in each.text)
    assert "for the deviation" in found.text
    assert found.labels[0].span.line == marked(OTHERS[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_variances_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
