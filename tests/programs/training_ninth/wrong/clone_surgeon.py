"""Behaviour cloning of suturing strokes with a Gaussian policy; the spread of the expert is learned per joint."""
import math

import torch
from torch import nn

LOG_STD_MIN, LOG_STD_MAX = -1.0, 1.0
JOINTS = 3


class Policy(nn.Module):
    def __init__(self, obs, act, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, width), nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.mean = nn.Linear(width, act)
        self.log_std = nn.Parameter(torch.full((act,), -1.5))

    def forward(self, obs):
        log_std = self.log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
        return self.mean(self.trunk(obs)), log_std

    def log_prob(self, obs, act):
        mean, log_std = self(obs)
        z = (act - mean) / log_std.exp()
        return (-0.5 * z ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(dim=-1)

    @torch.no_grad()
    def act(self, obs, gen):
        mean, log_std = self(obs)
        return mean + log_std.exp() * torch.randn(mean.shape, generator=gen)


class Expert:
    """Needle pose and tissue tension -> joint rates; the wrist is moved far less consistently than the base."""

    spread = torch.tensor([0.45, 0.7, 1.3])

    def __init__(self, gen):
        self.gen = gen
        self.a = torch.randn(6, JOINTS, generator=gen) / 6 ** 0.5
        self.b = torch.randn(6, JOINTS, generator=gen) / 6 ** 0.5

    def mean(self, obs):
        return torch.tanh(obs @ self.a) + 0.5 * torch.sin(2 * obs @ self.b)

    def strokes(self, n):
        obs = torch.randn(n, 6, generator=self.gen)
        noise = torch.randn(n, JOINTS, generator=self.gen)
        return obs, self.mean(obs) + self.spread * noise


def batches(obs, act, size, gen):
    for idx in torch.randperm(len(obs), generator=gen).split(size):
        yield obs[idx], act[idx]


def evaluate(policy, expert, gen):
    policy.eval()
    obs, act = expert.strokes(2000)
    with torch.no_grad():
        nll = -policy.log_prob(obs, act).mean().item()
        mean_error = (policy(obs)[0] - expert.mean(obs)).pow(2).mean().sqrt().item()
    sampled = policy.act(obs, gen) - expert.mean(obs)
    return nll, mean_error, sampled.std(0)


def main(epochs=30):
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    expert = Expert(gen)
    obs, act = expert.strokes(3000)
    policy = Policy(6, JOINTS)
    decay = [p for n, p in policy.named_parameters() if p.dim() > 1]
    rest = [p for n, p in policy.named_parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        policy.train()
        total = 0.0
        for o, a in batches(obs, act, 128, gen):
            loss = -policy.log_prob(o, a).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
            optimizer.step()
            total += loss.item() * len(o) / len(obs)
        scheduler.step()
        if epoch % 6 == 0:
            print(f"{epoch:3d}  nll {total:.3f}  grad norm {norm.item():.2f}")
    return policy, expert, evaluate(policy, expert, gen)


if __name__ == "__main__":
    policy, expert, (nll, mean_error, sampled) = main()
    print(f"held-out nll {nll:.3f}  mean error {mean_error:.3f}  sampled spread {[round(s, 2) for s in sampled.tolist()]}")
