"""Activity recognition from a wrist sensor that should not depend on the wearer (domain-adversarial training)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

ACTIVITIES = 4
WEARERS = 8
AXES = 3
STEPS = 64


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None


def wearer_bank(n, gen):
    mount = torch.linalg.qr(torch.eye(AXES) + 0.4 * torch.randn(n, AXES, AXES, generator=gen)).Q
    tremor = 8 + 8 * torch.rand(n, generator=gen)
    offset = torch.randn(n, AXES, generator=gen)
    return mount, tremor, offset


def record(bank, n, gen):
    mount, tremor, offset = bank
    w = torch.randint(len(mount), (n,), generator=gen)
    y = torch.randint(ACTIVITIES, (n,), generator=gen)
    t = torch.arange(STEPS) / 32
    cadence = torch.tensor([0.6, 1.4, 2.2, 3.2])[y]
    phase = 2 * math.pi * (cadence[:, None] * t + torch.rand(n, 1, generator=gen))
    swing = torch.stack([torch.sin(phase), 0.5 * torch.cos(phase), 0.3 * torch.sin(2 * phase)], 1)
    shake = 0.7 * torch.sin(2 * math.pi * tremor[w][:, None] * t)[:, None]
    x = torch.einsum("nij,njt->nit", mount[w], swing) + shake + offset[w][:, :, None]
    return x + 0.5 * torch.randn(n, AXES, STEPS, generator=gen), y, w


class SensorNet(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(AXES, ch, 9, stride=2, padding=4), nn.GroupNorm(4, ch), nn.ReLU(),
            nn.Conv1d(ch, ch, 5, stride=2, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(2), nn.Flatten())
        self.activity = nn.Linear(2 * ch, ACTIVITIES)
        self.wearer = nn.Sequential(nn.Linear(2 * ch, 32), nn.ReLU(), nn.Linear(32, WEARERS))

    def forward(self, x, weight=0.0):
        z = self.features(x)
        return self.activity(z), self.wearer(Reverse.apply(z, weight))


def train(strength, bank, seed, steps=300):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    net = SensorNet()
    # one optimizer for everything: the sign change in Reverse makes the game
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(steps):
        x, y, w = record(bank, 64, gen)
        weight = strength * (2 / (1 + math.exp(-10 * step / steps)) - 1)
        act, who = net(x, weight)
        loss = F.cross_entropy(act, y) + F.cross_entropy(who, w)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net


@torch.no_grad()
def score(net, bank, gen):
    x, y, w = record(bank, 2000, gen)
    act, who = net(x)
    wearer = (who.argmax(1) == w).float().mean().item()
    return (act.argmax(1) == y).float().mean().item(), wearer


def main():
    gen = torch.Generator().manual_seed(8)
    bank, others = wearer_bank(WEARERS, gen), wearer_bank(100, gen)
    for strength in (0.0, 0.3):
        net = train(strength, bank, seed=8).eval()
        acc, wearer = score(net, bank, gen)
        new, _ = score(net, others, gen)
        print(f"strength {strength}: activity {acc:.3f}, on new wearers {new:.3f}, wearer identified {wearer:.3f}")


if __name__ == "__main__":
    main()
