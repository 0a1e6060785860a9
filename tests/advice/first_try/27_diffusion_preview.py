import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, dim=2, width=48):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, width), nn.SiLU())
        self.inp = nn.Linear(dim, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, dim)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t[:, None]))
        return self.out(F.silu(self.mid(h)))


class EMA:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.backup = None

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def swap_in(self, model):
        self.backup = [p.clone() for p in model.parameters()]
        for p, s in zip(model.parameters(), self.shadow.parameters()):
            p.copy_(s)

    @torch.no_grad()
    def swap_out(self, model):
        for p, b in zip(model.parameters(), self.backup):
            p.copy_(b)
        self.backup = None


class PreviewCallback:
    def __init__(self, ema, every, gen):
        self.ema, self.every, self.gen = ema, every, gen

    def on_forward_end(self, step, model, loss):
        if step % self.every:
            return
        self.ema.swap_in(model)
        with torch.no_grad():
            x = torch.randn(32, 2, generator=self.gen)
            for t in torch.linspace(1.0, 0.1, 8):
                x = x - 0.12 * model(x, t.expand(32))
        self.ema.swap_out(model)
        print(f"step {step} loss {loss.item():.4f} preview radius {x.norm(dim=1).mean().item():.3f}")


def ring(n):
    a = torch.rand(n) * 6.2832
    return torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2)


def train(steps=41):
    torch.manual_seed(2)
    model = Denoiser()
    ema = EMA(model)
    preview = PreviewCallback(ema, 10, torch.Generator().manual_seed(1))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        x0 = ring(128)
        t = torch.rand(128)
        noise = torch.randn_like(x0)
        xt = (1 - t)[:, None] * x0 + t[:, None] * noise
        loss = F.mse_loss(model(xt, t), noise)
        preview.on_forward_end(step, model, loss)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)


if __name__ == "__main__":
    train()
