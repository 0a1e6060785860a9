"""bfloat16 network with float32 master weights, linear warm-up and gradient accumulation.

The network that computes is bfloat16 throughout. The optimizer works on float32 copies of its weights; after
every step the copies are rounded back into the network.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Settings:
    seed = 17
    steps = 260
    micro, accumulate = 32, 3
    lr, warmup = 2e-3, 25
    clip = 1.0
    width = 96


def spirals(n, rng, arms=3):
    y = rng.integers(0, arms, size=n)
    r = np.sqrt(rng.random(n)) * 3
    t = 2.2 * r + 2 * np.pi * y / arms
    x = np.stack([r * np.cos(t), r * np.sin(t)], 1) + rng.normal(0, 0.08, size=(n, 2))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def fourier(x, freqs):
    z = x @ freqs
    return torch.cat([x, z.sin(), z.cos()], 1)


class Masters:
    """float32 copies of the parameters of a low-precision network."""

    def __init__(self, net):
        self.net = net
        self.low = list(net.parameters())
        self.full = [nn.Parameter(p.detach().float().clone()) for p in self.low]

    def collect(self):
        """Adds the gradients of one micro-batch in float32 and empties those of the network."""
        for p, m in zip(self.low, self.full):
            g = p.grad.float()
            m.grad = g if m.grad is None else m.grad + g
            p.grad = None

    @torch.no_grad()
    def publish(self):
        for p, m in zip(self.low, self.full):
            p.copy_(m)


def lr_factor(step):
    if step < Settings.warmup:
        return (step + 1) / Settings.warmup
    t = (step - Settings.warmup) / (Settings.steps - Settings.warmup)
    return 0.5 * (1 + math.cos(math.pi * t))


@torch.no_grad()
def accuracy(net, x, y):
    return (net(x.bfloat16()).argmax(1) == y).float().mean().item()


def main():
    cfg = Settings
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    x, y = spirals(3000, rng)
    x_test, y_test = spirals(2000, rng)
    freqs = torch.randn(2, 24) * 1.2
    x, x_test = fourier(x, freqs), fourier(x_test, freqs)

    net = nn.Sequential(nn.Linear(x.shape[1], cfg.width), nn.GELU(), nn.Linear(cfg.width, cfg.width), nn.GELU(),
                        nn.Linear(cfg.width, 3))
    net = net.bfloat16()
    masters = Masters(net)
    optimizer = torch.optim.AdamW(masters.full, lr=cfg.lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)

    start = [m.detach().clone() for m in masters.full]
    for step in range(cfg.steps):
        rows = torch.randint(len(x), (cfg.micro * cfg.accumulate,))
        total = 0.0
        for part in rows.split(cfg.micro):
            logits = net(x[part].bfloat16()).float()
            loss = F.cross_entropy(logits, y[part], reduction="sum") / len(rows)
            loss.backward()
            masters.collect()
            total += loss.item()
        nn.utils.clip_grad_norm_(masters.full, cfg.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        masters.publish()
        scheduler.step()
        if step % 65 == 64:
            print(f"step {step + 1:3d}  loss {total:.3f}  test accuracy {accuracy(net, x_test, y_test):.3f}")

    gap = max((p.float() - m).abs().max().item() for p, m in zip(masters.low, masters.full))
    moved = sum((m - s).norm().item() ** 2 for m, s in zip(masters.full, start)) ** 0.5
    print(f"largest rounding gap {gap:.5f}, distance travelled by the masters {moved:.2f}")


main()
