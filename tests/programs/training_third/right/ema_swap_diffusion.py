import contextlib
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class NoiseNet(nn.Module):
    def __init__(self, dim=2, width=48):
        super().__init__()
        self.inp = nn.Linear(dim + 8, width)
        self.norm = nn.BatchNorm1d(width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, dim)
        self.register_buffer("freqs", 2.0 ** torch.arange(4))

    def forward(self, x, t):
        angle = t[:, None] * self.freqs * math.pi
        h = torch.cat([x, angle.sin(), angle.cos()], dim=1)
        h = F.silu(self.norm(self.inp(h)))
        return self.out(F.silu(self.mid(h)))


class EMA:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.shadow.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - self.decay)
        for slow, fast in zip(self.shadow.buffers(), model.buffers()):
            slow.copy_(fast)

    @contextlib.contextmanager
    def applied_to(self, model):
        backup = copy.deepcopy(model.state_dict())
        model.load_state_dict(self.shadow.state_dict())
        try:
            yield model
        finally:
            model.load_state_dict(backup)


def alpha_bar(t):
    return torch.cos(t * math.pi / 2).pow(2).clamp(1e-4, 0.9999)[:, None]


def denoise_loss(model, x):
    t = torch.rand(len(x))
    noise = torch.randn_like(x)
    a = alpha_bar(t)
    return F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


@torch.no_grad()
def evaluate(model, x, repeats=4):
    was_training = model.training
    model.eval()
    with torch.random.fork_rng():
        torch.manual_seed(123)
        score = sum(denoise_loss(model, x).item() for _ in range(repeats)) / repeats
    model.train(was_training)
    return score


def moons(n):
    angle = math.pi * torch.rand(n)
    side = torch.randint(0, 2, (n,)).float()
    x = torch.stack([angle.cos() + side, (1 - 2 * side) * angle.sin() + 0.5 * side], dim=1)
    return x + 0.05 * torch.randn(n, 2)


def main(steps=120):
    torch.manual_seed(0)
    model = NoiseNet().train()
    ema = EMA(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    heldout = moons(256)
    for step in range(1, steps + 1):
        loss = denoise_loss(model, moons(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        if step % 40 == 0:
            raw = evaluate(model, heldout)
            with ema.applied_to(model):
                smooth = evaluate(model, heldout)
            print(f"step {step} raw {raw:.4f} ema {smooth:.4f}")
    return model, ema


if __name__ == "__main__":
    model, ema = main()
