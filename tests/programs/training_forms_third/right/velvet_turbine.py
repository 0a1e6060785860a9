import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(31)
CHANNELS, STEPS = 3, 16


def vibrations(n):
    time = torch.arange(STEPS) / STEPS * 6.28
    shift = torch.rand(n, CHANNELS, 1) * 0.5
    return torch.sin(2 * time + shift) + 0.05 * torch.randn(n, CHANNELS, STEPS)


critic = nn.Sequential(
    nn.Conv1d(CHANNELS, 12, 3, padding=1), nn.Softplus(), nn.Flatten(), nn.Linear(12 * STEPS, 1)
)
maker = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, CHANNELS * STEPS))


def generate(n):
    return maker(torch.randn(n, 6)).unflatten(1, (CHANNELS, STEPS))


def steepness(real, fake):
    weights = dict(critic.named_parameters())
    mix = torch.rand(len(real), 1, 1)
    between = torch.lerp(real, fake, mix)
    slope = grad(lambda z: functional_call(critic, weights, (z,)).sum())(between)
    length = slope.pow(2).sum((1, 2)).add(1e-10).sqrt()
    return (length - 1).pow(2).mean()


def critic_turn(optimizer, real):
    with torch.no_grad():
        fake = generate(len(real))
    gap = critic(fake).mean() - critic(real).mean()
    penalty = steepness(real, fake)
    optimizer.zero_grad()
    (gap + 10 * penalty).backward()
    optimizer.step()
    return gap.item(), penalty.item()


def maker_turn(optimizer, n):
    loss = -critic(generate(n)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
maker_opt = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.0, 0.9))
for turn in range(90):
    for _ in range(3):
        gap, penalty = critic_turn(critic_opt, vibrations(32))
    score = maker_turn(maker_opt, 32)
    if turn % 30 == 29:
        print(f"turn {turn + 1}  gap {gap:+.3f}  penalty {penalty:.4f}  maker {score:+.3f}")
