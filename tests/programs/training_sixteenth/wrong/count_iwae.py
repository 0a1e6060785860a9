"""Importance weighted autoencoder (Burda et al., 2016) on binary gene-presence vectors.

The bound uses K samples per data point: log 1/K sum_k p(x, z_k) / q(z_k | x).
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(3)

GENES, LATENT, K, BATCH = 40, 4, 8, 64


def sample_cells(n, loadings, bias):
    """Cells of five types with a continuous programme each; genes are present or absent."""
    kind = torch.randint(0, 5, (n,))
    activity = torch.randn(n, 1).abs()
    logits = loadings[kind] * activity + bias
    return torch.bernoulli(torch.sigmoid(logits))


class IWAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(GENES, 64), nn.Tanh(), nn.Linear(64, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, 64), nn.Tanh(), nn.Linear(64, GENES))

    def posterior(self, x):
        mu, log_std = self.enc(x).chunk(2, dim=-1)
        return Normal(mu, log_std.clamp(-5, 2).exp())

    def log_weights(self, x):
        """log p(x, z) - log q(z | x), with one z for each row of x."""
        q = self.posterior(x)
        z = q.rsample()
        prior = Normal(torch.zeros_like(z), torch.ones_like(z))
        log_px = -F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="none").sum(-1)
        return log_px + prior.log_prob(z).sum(-1) - q.log_prob(z).sum(-1)

    def bound(self, x, k):
        expanded = x.repeat(k, 1)
        log_w = self.log_weights(expanded).view(x.size(0), k)
        return (torch.logsumexp(log_w, dim=1) - math.log(k)).mean()


def marginal_loglik(model, x, samples=200):
    """Test log-likelihood by importance sampling, one cell sample at a time."""
    with torch.no_grad():
        draws = torch.stack([model.log_weights(x) for _ in range(samples)])
        return (torch.logsumexp(draws, dim=0) - math.log(samples)).mean().item()


loadings = torch.randn(5, GENES) * 1.5
bias = torch.randn(GENES) - 0.5
train_x = sample_cells(2048, loadings, bias)
test_x = sample_cells(512, loadings, bias)

model = IWAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=15, gamma=0.3)

for epoch in range(30):
    running = 0.0
    batches = train_x[torch.randperm(len(train_x))].split(BATCH)
    for x in batches:
        loss = -model.bound(x, K)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        running -= loss.item()
    scheduler.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: bound (K={K}) {running / len(batches):.3f}")

with torch.no_grad():
    train_bound = model.bound(test_x, K).item()
    spread = model.posterior(test_x).stddev.mean().item()
test_ll = marginal_loglik(model, test_x)
print(f"test bound {train_bound:.3f}  test log-likelihood {test_ll:.3f}  posterior std {spread:.3f}")
