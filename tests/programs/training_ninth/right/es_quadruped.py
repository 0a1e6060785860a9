"""Evolution strategies on a toy gait controller: perturbed copies of the weights, ranks of returns, Adam on the mean."""
import math

import torch
from torch import nn
from torch.func import functional_call

LEGS, POP, SIGMA, LENGTH = 4, 20, 0.08, 30


class Gait(nn.Module):
    """Maps leg phases and body speed to phase rates."""

    def __init__(self, width=24):
        super().__init__()
        self.inp = nn.Linear(2 * LEGS + 1, width)
        self.out = nn.Linear(width, LEGS)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x)))


def simulate(policy, weights, phases):
    """Diagonal legs should move together, the pairs in opposition; speed follows from coordination."""
    speed = torch.zeros(len(phases), 1)
    total = torch.zeros(len(phases))
    for _ in range(LENGTH):
        feats = torch.cat([phases.sin(), phases.cos(), speed], dim=1)
        rate = 1.0 + functional_call(policy, weights, (feats,)).clamp(-2, 2)
        phases = phases + 0.2 * rate
        together = torch.cos(phases[:, 0] - phases[:, 3]) + torch.cos(phases[:, 1] - phases[:, 2])
        apart = -torch.cos(phases[:, 0] - phases[:, 1]) - torch.cos(phases[:, 2] - phases[:, 3])
        drive = (together + apart) / 4
        speed = 0.8 * speed + 0.2 * drive[:, None]
        total = total + speed[:, 0] - 0.01 * rate.pow(2).mean(1)
    return total / LENGTH


def centred_ranks(values):
    ranks = torch.empty_like(values)
    ranks[values.argsort()] = torch.arange(len(values), dtype=values.dtype)
    return ranks / (len(values) - 1) - 0.5


@torch.no_grad()
def estimate(policy, gen):
    """Fill .grad of every parameter from antithetic perturbations; returns the mean return of the population."""
    centre = policy.state_dict()
    phases = torch.rand(16, LEGS, generator=gen) * 2 * math.pi
    noises, scores = [], []
    for _ in range(POP // 2):
        noise = {k: torch.randn(v.shape, generator=gen) for k, v in centre.items()}
        for sign in (1.0, -1.0):
            moved = {k: v + sign * SIGMA * noise[k] for k, v in centre.items()}
            scores.append(simulate(policy, moved, phases).mean())
            noises.append((sign, noise))
    scores = torch.stack(scores)
    weight = centred_ranks(scores)
    for name, p in policy.named_parameters():
        direction = sum(w * sign * noise[name] for w, (sign, noise) in zip(weight, noises))
        p.grad = -direction / (POP * SIGMA)
    return scores.mean().item()


@torch.no_grad()
def evaluate(policy, gen):
    phases = torch.rand(256, LEGS, generator=gen) * 2 * math.pi
    return simulate(policy, policy.state_dict(), phases).mean().item()


def main(generations=36):
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(1)
    policy = Gait()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
    start = evaluate(policy, gen)
    for g in range(generations):
        score = estimate(policy, gen)
        optimizer.step()
        if g % 7 == 0:
            print(f"{g:3d}  population return {score:+.3f}")
    return policy, start, evaluate(policy, gen)


if __name__ == "__main__":
    policy, start, end = main()
    print(f"return before {start:+.3f}  after {end:+.3f}")
