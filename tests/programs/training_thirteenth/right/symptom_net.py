"""Noisy-or style belief network with binary causes, learned with a score-function variational bound.

Each record is a vector of 12 symptoms; 5 hidden binary causes explain them. The recognition network proposes causes;
its gradient is the leave-one-out score-function estimator, the generative half gets the plain gradient.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Bernoulli

torch.manual_seed(13)

CAUSES = 5
SYMPTOMS = 12
SAMPLES = 4
BATCH = 128
STEPS = 900
WARMUP = 200


def make_records(n, generator):
    prior = torch.tensor([0.3, 0.2, 0.4, 0.25, 0.15])
    strength = torch.zeros(CAUSES, SYMPTOMS)
    for c in range(CAUSES):
        strength[c, [(2 * c + k) % SYMPTOMS for k in range(4)]] = torch.tensor([2.5, 2.0, 3.0, 1.5])
    causes = torch.bernoulli(prior.expand(n, CAUSES), generator=generator)
    off = torch.exp(-(causes @ strength) - 0.05)
    return torch.bernoulli(1 - off, generator=generator)


class NoisyOr(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior_logit = nn.Parameter(torch.full((CAUSES,), -1.0))
        self.raw = nn.Parameter(torch.randn(CAUSES, SYMPTOMS) * 0.5 - 0.5)
        self.register_buffer("leak", torch.tensor(0.05))

    def log_joint(self, x, z):
        rate = z @ F.softplus(self.raw) + self.leak
        log_on = torch.log(-torch.expm1(-rate))
        likelihood = (x * log_on - (1 - x) * rate).sum(-1)
        return likelihood + Bernoulli(logits=self.prior_logit).log_prob(z).sum(-1)


class Recognition(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(SYMPTOMS, width), nn.Tanh(), nn.Linear(width, CAUSES))

    def forward(self, x):
        return Bernoulli(logits=self.net(x))


def bound(model, recognition, x):
    q = recognition(x)
    z = q.sample((SAMPLES,))
    log_q = q.log_prob(z).sum(-1)
    return model.log_joint(x, z), log_q


def exact_log_likelihood(model, x):
    grid = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * CAUSES)
    return torch.stack([model.log_joint(x, z.expand(len(x), CAUSES)) for z in grid]).logsumexp(0)


def main():
    generator = torch.Generator().manual_seed(0)
    train, test = make_records(4000, generator), make_records(1000, generator)
    model, recognition = NoisyOr(), Recognition()
    optimizer = torch.optim.Adam([
        {"params": model.parameters(), "lr": 1e-2},
        {"params": recognition.parameters(), "lr": 5e-3},
    ])
    for step in range(STEPS):
        x = train[torch.randint(len(train), (BATCH,))]
        log_joint, log_q = bound(model, recognition, x)
        reward = (log_joint - log_q).detach()
        # every sample is compared with the mean of the other samples of the same record
        baseline = (reward.sum(0, keepdim=True) - reward) / (SAMPLES - 1)
        recognition_loss = -((reward - baseline) * log_q).mean()
        model_loss = -log_joint.mean()
        # the generative half waits until the recognition network has a sensible starting point
        loss = recognition_loss if step < WARMUP else recognition_loss + model_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step:4d}  bound {reward.mean().item():.4f}")
    with torch.no_grad():
        log_joint, log_q = bound(model, recognition, test)
        elbo = (log_joint - log_q).mean().item()
        exact = exact_log_likelihood(model, test).mean().item()
        rate = train.mean(0).clamp(0.01, 0.99)
        independent = Bernoulli(rate).log_prob(test).sum(-1).mean().item()
    print(f"test bound {elbo:.3f}  exact {exact:.3f}  independent symptoms {independent:.3f}")


if __name__ == "__main__":
    main()
