"""Wasserstein distance between two point clouds with a spectrally normalised critic.

Follows the TensorFlow layer-wrapper version: every dense layer divides its kernel by an estimate of its largest
singular value, so that the critic stays 1-Lipschitz and the dual value is a lower bound of the distance.
The clouds are shifted copies of each other, so the true distance is known.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

DIM = 6
SHIFT = 2.0
STEPS = 900
BATCH = 128


class SNDense(nn.Module):
    """Dense layer with kernel / sigma(kernel); one power iteration per training step."""

    def __init__(self, n_in, n_out, iterations=1, eps=1e-12):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.orthogonal_(self.weight, gain=1.4)
        self.iterations = iterations
        self.eps = eps
        self.register_buffer("u", F.normalize(torch.randn(n_out), dim=0))

    def sigma(self):
        u = self.u
        if self.training:
            with torch.no_grad():
                for _ in range(self.iterations):
                    v = F.normalize(self.weight.t() @ u, dim=0, eps=self.eps)
                    u = F.normalize(self.weight @ v, dim=0, eps=self.eps)
        else:
            v = F.normalize(self.weight.detach().t() @ u, dim=0, eps=self.eps)
        return u @ self.weight @ v

    def forward(self, x):
        return F.linear(x, self.weight / self.sigma(), self.bias)


class GroupSort(nn.Module):
    """Sorts pairs of units: a gradient-norm preserving activation."""

    def forward(self, x):
        pairs = x.view(x.shape[0], -1, 2)
        return torch.cat([pairs.min(dim=2).values, pairs.max(dim=2).values], dim=1)


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            SNDense(DIM, width), GroupSort(),
            SNDense(width, width), GroupSort(),
            SNDense(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


direction = F.normalize(torch.randn(DIM), dim=0)
base_scale = torch.linspace(0.4, 1.2, DIM)


def sample(n):
    p = torch.randn(n, DIM) * base_scale
    q = torch.randn(n, DIM) * base_scale + SHIFT * direction
    return p, q


critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))

for step in range(STEPS):
    p, q = sample(BATCH)
    gap = critic(q).mean() - critic(p).mean()
    optimizer.zero_grad()
    (-gap).backward()
    optimizer.step()
    if step % 150 == 0:
        print(f"step {step:4d}  dual value {gap.item():.3f}")

with torch.no_grad():
    p, q = sample(5000)
    estimate = (critic(q).mean() - critic(p).mean()).item()
print(f"estimated distance {estimate:.3f}, true distance {SHIFT:.3f}")
