"""Generative moment matching with a Gaussian kernel."""
import torch
import torch.nn as nn

torch.manual_seed(19)
BANDWIDTHS = (0.2, 0.5, 1.0)


def kernel(a, b):
    squared = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(dim=-1)
    return sum(torch.exp(-squared / (2 * w * w)) for w in BANDWIDTHS)


def mmd(a, b):
    n, m = len(a), len(b)
    k_aa, k_bb, k_ab = kernel(a, a), kernel(b, b), kernel(a, b)
    within_a = (k_aa.sum() - k_aa.diagonal().sum()) / (n * (n - 1))
    within_b = (k_bb.sum() - k_bb.diagonal().sum()) / (m * (m - 1))
    return within_a + within_b - 2 * k_ab.mean()


def target(n):
    side = torch.randint(2, (n, 1)).float() * 2 - 1
    return torch.cat([side + 0.2 * torch.randn(n, 1), 0.5 * side + 0.3 * torch.randn(n, 1)], dim=1)


generator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.1), nn.Linear(32, 32), nn.LeakyReLU(0.1), nn.Linear(32, 2))
opt = torch.optim.Adam(generator.parameters(), lr=5e-3)

for step in range(150):
    loss = mmd(generator(torch.randn(96, 4)), target(96))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"step {step}: mmd {loss.item():.4f}")

with torch.no_grad():
    final = mmd(generator(torch.randn(400, 4)), target(400)).item()
print(f"final mmd {final:.4f}")
