"""Checks what `--training` says about a draw that a loss uses as a constant, while it trains the distribution."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, Laplace, Normal, kl_divergence
from torch.nn import functional as F
torch.manual_seed(0)
x = torch.randn(16, 4)
mean, spread, decoder = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(2, 4)
opt = torch.optim.Adam([*mean.parameters(), *spread.parameters(), *decoder.parameters()], lr=0.01)
prior = Normal(torch.zeros(2), torch.ones(2))

def normal():
    return Normal(mean(x), spread(x).exp())

def run(loss, steps=3):
    for _ in range(steps):
        opt.zero_grad()
        loss().backward()
        opt.step()
"""
CONSTANT = {
    "an autoencoder": """
        def loss():
            q = normal()
            z = q.sample()  # here
            return F.mse_loss(decoder(z), x) + kl_divergence(q, prior).mean()
        run(loss)
        """,
    "several draws": """
        def loss():
            q = normal()
            z = q.sample((3,))  # here
            return (decoder(z) - x).square().mean() + 0.1 * kl_divergence(q, prior).mean()
        run(loss)
        """,
    "an entropy": """
        def loss():
            q = Independent(Laplace(mean(x), spread(x).exp()), 1)
            z = q.sample().clone()  # here
            return F.mse_loss(decoder(z), x) - 0.01 * q.entropy().mean() + q.mean.square().mean()
        run(loss)
        """,
    "bits": """
        def loss():
            q = Bernoulli(logits=mean(x))
            z = q.sample()  # here
            return F.mse_loss(decoder(z), x) - 0.01 * q.entropy().mean()
        run(loss)
        """,
    "a term that keeps the values small": """
        def loss():
            m = mean(x)
            z = Normal(m, 1.0).sample()  # here
            return F.mse_loss(decoder(z), x) + m.square().mean()
        run(loss)
        """,
    "an actor whose critic reads the draw": """
        critic = nn.Linear(6, 1)
        other = torch.optim.Adam(critic.parameters())
        def loss():
            other.step()
            other.zero_grad()
            q = normal()
            action = q.sample()  # here
            log_prob = q.log_prob(action).sum(1)
            return (0.05 * log_prob - critic(torch.cat([x, action.tanh()], 1)).squeeze(1)).mean()
        run(loss)
        """,
}
PASSES_ZEROS = {
    "torch.normal": """
        def loss():
            m, s = mean(x), spread(x).exp()
            z = torch.normal(m, s)  # here
            return F.mse_loss(decoder(z), x) + (m.square() + s).mean()
        run(loss)
        """,
    "torch.bernoulli": """
        def loss():
            p = mean(x).sigmoid()
            z = torch.bernoulli(p).view(16, 2)  # here
            return F.mse_loss(decoder(z), x) + p.mean()
        run(loss)
        """,
}
USUAL = {
    "torch.bernoulli, straight through": """
        def loss():
            p = mean(x).sigmoid()
            z = torch.bernoulli(p) + p - p.detach()
            return F.mse_loss(decoder(z), x) + p.mean()
        run(loss)
        """,
    "torch.bernoulli, a score function": """
        def loss():
            p = mean(x).sigmoid()
            z = torch.bernoulli(p)
            score = (z * p.log() + (1 - z) * (1 - p).log()).sum(1)
            return (score * (decoder(z) - x).square().mean(1).detach()).mean() + p.mean()
        run(loss)
        """,
    "torch.normal of data": """
        def loss():
            noisy = torch.normal(x, 0.1)
            return F.mse_loss(decoder(mean(noisy)), x) + spread(noisy).square().mean()
        run(loss)
        """,
    "torch.normal of what is not trained otherwise": """
        def loss():
            return F.mse_loss(decoder(torch.normal(mean(x), 0.1)), x)
        run(loss)
        """,
    "an actor whose critic reads an earlier draw": """
        critic = nn.Linear(6, 1)
        other = torch.optim.Adam(critic.parameters())
        past = []
        def loss():
            other.step()
            other.zero_grad()
            past.append(normal().sample())
            q = normal()
            action = q.rsample()
            state = torch.cat([x, past[-1]], 1)
            value = critic(state)[:, 0] + critic(torch.cat([x, action], 1))[:, 0]
            return (0.05 * q.log_prob(action).sum(1) - value).mean()
        run(loss)
        """,
    "a score function times a critic": """
        critic = nn.Linear(6, 1)
        def loss():
            q = normal()
            action = q.sample()
            return -(q.log_prob(action).sum(1) * critic(torch.cat([x, action], 1))[:, 0]).mean()
        run(loss)
        """,
    "rsample": """
        def loss():
            q = normal()
            return F.mse_loss(decoder(q.rsample()), x) + kl_divergence(q, prior).mean()
        run(loss)
        """,
    "noise by hand": """
        def loss():
            m, s = mean(x), spread(x).exp()
            return F.mse_loss(decoder(m + s * prior.sample((16,))), x) + (m.square() + s).mean()
        run(loss)
        """,
    "a policy gradient": """
        def loss():
            q = normal()
            action = q.sample()
            return -(q.log_prob(action).sum(1) * action.sum(1)).mean() - 0.01 * q.entropy().mean()
        run(loss)
        """,
    "a score function with a decoder": """
        def loss():
            q = normal()
            z = q.sample()
            error = (decoder(z) - x).square().mean(1)
            return error.mean() + (q.log_prob(z).sum(1) * error.detach()).mean() + kl_divergence(q, prior).mean()
        run(loss)
        """,
    "straight through": """
        def loss():
            p = mean(x).sigmoid()
            z = Bernoulli(p).sample()
            z = z + p - p.detach()
            return F.mse_loss(decoder(z), x) + p.mean()
        run(loss)
        """,
    "a sampled token": """
        table = nn.Embedding(2, 2)
        def loss():
            logits = mean(x)
            token = Categorical(logits=logits).sample()
            return F.mse_loss(decoder(table(token)), x) + F.cross_entropy(logits, torch.zeros(16).long())
        run(loss)
        """,
    "a draw under no_grad": """
        def loss():
            q = normal()
            with torch.no_grad():
                z = q.sample()
            return F.mse_loss(decoder(z), x) + kl_divergence(q, prior).mean()
        run(loss)
        """,
    "a draw from data": """
        def loss():
            noisy = Normal(x, 0.1).sample()
            return F.mse_loss(decoder(mean(noisy)), x) + spread(noisy).square().mean()
        run(loss)
        """,
    "a draw that is only shown": """
        def loss():
            q = normal()
            q.sample().mean().item()
            return F.mse_loss(decoder(q.mean), x) + kl_divergence(q, prior).mean()
        run(loss)
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", CONSTANT)
def test_a_draw_that_is_a_constant_is_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + textwrap.dedent(CONSTANT[kind]), "draws enters the loss as a constant")
    assert [each.labels[0].role for each in found] == ["graph_cut_here"]
    assert "`mean.weight`" in found[0].text
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", PASSES_ZEROS)
def test_a_draw_that_passes_zeros_on_is_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + textwrap.dedent(PASSES_ZEROS[kind]), "whose gradients all come another way")
    assert [each.labels[0].role for each in found] == ["graph_cut_here"]
    assert "passes only zeros on to `mean.weight`" in found[0].text
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", USUAL)
def test_usual_draws_are_no_news(kind: str, tmp_path: Path) -> None:
    script = START + textwrap.dedent(USUAL[kind])
    assert [said(tmp_path, script, words)[0] for words in ("draws enters", "come another way")] == [[], []]
