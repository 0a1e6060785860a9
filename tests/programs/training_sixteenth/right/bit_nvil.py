"""Sigmoid belief network with discrete latents on binary glyphs, trained with the score-function
estimator and a leave-one-out baseline (Mnih & Rezende, 2016; Kool et al., 2019)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli

torch.manual_seed(2)

SIDE, BITS, SAMPLES = 6, 8, 4
PIXELS = SIDE * SIDE


def glyphs(n):
    """Union of random full rows and columns with some pixel flips (the bars problem)."""
    rows = (torch.rand(n, SIDE, 1) < 0.2).float()
    cols = (torch.rand(n, 1, SIDE) < 0.2).float()
    img = torch.maximum(rows.expand(n, SIDE, SIDE), cols.expand(n, SIDE, SIDE))
    flips = (torch.rand_like(img) < 0.02).float()
    return (img - flips).abs().view(n, PIXELS)


class BeliefNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior_logits = nn.Parameter(torch.zeros(BITS))
        self.inference = nn.Sequential(nn.Linear(PIXELS, 64), nn.ReLU(), nn.Linear(64, BITS))
        self.generator = nn.Sequential(nn.Linear(BITS, 64), nn.ReLU(), nn.Linear(64, PIXELS))

    def elbo_samples(self, x):
        """Elbo of each sample and log q, both of shape (SAMPLES, batch)."""
        q = Bernoulli(logits=self.inference(x))
        with torch.no_grad():
            h = q.sample((SAMPLES,))
        log_q = q.log_prob(h).sum(-1)
        log_prior = Bernoulli(logits=self.prior_logits).log_prob(h).sum(-1)
        recon = -F.binary_cross_entropy_with_logits(
            self.generator(h), x.expand(SAMPLES, -1, -1), reduction="none").sum(-1)
        return recon + log_prior - log_q.detach(), log_q

    def loss(self, x):
        elbo, log_q = self.elbo_samples(x)
        signal = elbo.detach()
        baseline = (signal.sum(0, keepdim=True) - signal) / (SAMPLES - 1)
        # the first term trains the generator and the prior, the second one the inference network
        surrogate = elbo + (signal - baseline) * log_q
        return -surrogate.mean(), elbo.mean().item()


train_x, test_x = glyphs(3000), glyphs(500)
model = BeliefNet()
with torch.no_grad():
    model.generator[-1].bias.copy_(torch.logit(train_x.mean(0).clamp(0.01, 0.99)))
optimizer = torch.optim.Adam([
    {"params": [model.prior_logits], "lr": 1e-2},
    {"params": model.generator.parameters(), "lr": 3e-3},
    {"params": model.inference.parameters(), "lr": 3e-3},
])

for epoch in range(40):
    total = 0.0
    batches = train_x[torch.randperm(len(train_x))].split(100)
    for x in batches:
        loss, elbo = model.loss(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += elbo
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {loss.item():.2f}  train elbo {total / len(batches):.3f}")

with torch.no_grad():
    draws = torch.cat([model.elbo_samples(test_x)[0] for _ in range(50)])
    test_elbo = draws.mean().item()
    test_ll = (torch.logsumexp(draws, 0) - math.log(len(draws))).mean().item()
    marginal = train_x.mean(0).clamp(0.01, 0.99)
    independent = Bernoulli(marginal).log_prob(test_x).sum(-1).mean().item()
print(f"test elbo {test_elbo:.3f}  log-likelihood {test_ll:.3f}  independent pixels {independent:.3f}")
