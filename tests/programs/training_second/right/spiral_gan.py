import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(71)


def network(inputs, outputs, hidden=32):
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, outputs)
    )


def spiral(n):
    t = torch.rand(n) * 6
    return torch.stack([t * t.cos(), t * t.sin()], dim=1) / 3 + 0.03 * torch.randn(n, 2)


generator, judge = network(3, 2), network(2, 1)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.99))
j_optimizer = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.99))

for step in range(80):
    real = spiral(48)
    fake = generator(torch.randn(48, 3))

    judge_loss = softplus(-judge(real)).mean() + softplus(judge(fake.detach())).mean()
    j_optimizer.zero_grad()
    judge_loss.backward()
    j_optimizer.step()

    judge.requires_grad_(False)
    generator_loss = softplus(-judge(fake)).mean()
    g_optimizer.zero_grad()
    generator_loss.backward()
    g_optimizer.step()
    judge.requires_grad_(True)

    if step % 20 == 19:
        print(f"step {step + 1} judge {judge_loss.item():.4f} generator {generator_loss.item():.4f}")

with torch.no_grad():
    points = generator(torch.randn(300, 3))
    nearest = torch.cdist(points, spiral(300)).min(dim=1).values
print(f"mean distance to the spiral {nearest.mean():.4f}")
