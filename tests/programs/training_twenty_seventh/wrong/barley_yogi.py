"""Barley yield from weather series, trained with a home-made Yogi optimizer and preemptible-job checkpoints."""
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer


class Yogi(Optimizer):
    """Zaheer et al. 2018, with bias correction and decoupled weight decay."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999), eps=1e-3, weight_decay=0.0):
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, defaults)
        self.num_steps = 0

    @torch.no_grad()
    def step(self):
        self.num_steps += 1
        for group in self.param_groups:
            b1, b2 = group["betas"]
            c1 = 1 - b1 ** self.num_steps
            c2 = 1 - b2 ** self.num_steps
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                g2 = p.grad * p.grad
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.add_(torch.sign(g2 - v) * g2, alpha=1 - b2)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(m / c1, (v / c2).sqrt() + group["eps"], value=-group["lr"])


class YieldNet(nn.Module):
    def __init__(self, channels=3, hidden=24):
        super().__init__()
        self.conv = nn.Conv1d(channels, hidden, 5, stride=2)
        self.head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        h = F.silu(self.conv(x))
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], dim=-1)).squeeze(-1)


def make_seasons(n, g):
    t = torch.linspace(0, 1, 40)
    phase = torch.rand(n, 1, generator=g)
    temp = torch.sin(math.pi * (t + 0.3 * phase)) + 0.2 * torch.randn(n, 40, generator=g)
    rain = F.relu(torch.randn(n, 40, generator=g) - 0.5)
    light = torch.cos(2 * math.pi * (t - phase)) + 0.1 * torch.randn(n, 40, generator=g)
    y = temp[:, 10:30].mean(1) + 0.8 * torch.tanh(rain.sum(1) / 8) - 0.3 * temp.amax(1)
    return torch.stack([temp, rain, light], 1), (y - y.mean()) / y.std()


def save(buf, model, opt, sched, epoch):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                "epoch": epoch, "rng": torch.get_rng_state()}, buf)


def load(buf, model, opt, sched):
    buf.seek(0)
    ckpt = torch.load(buf)
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    sched.load_state_dict(ckpt["sched"])
    torch.set_rng_state(ckpt["rng"])
    return ckpt["epoch"] + 1


def build():
    model = YieldNet()
    opt = Yogi(model.parameters(), lr=6e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)
    return model, opt, sched


def session(data, epochs, buf, resume=False):
    """One slot on the cluster: continues from the checkpoint where there is one."""
    model, opt, sched = build()
    first = load(buf, model, opt, sched) if resume else 0
    x, y = data
    for epoch in range(first, epochs):
        for idx in torch.randperm(len(x)).split(32):
            opt.zero_grad()
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch:2d}  lr {sched.get_last_lr()[0]:.4f}  loss {loss.item():.4f}")
    buf.seek(0)
    save(buf, model, opt, sched, epoch)
    return model


g = torch.Generator().manual_seed(21)
train, test = make_seasons(512, g), make_seasons(512, g)
torch.manual_seed(4)
disk = io.BytesIO()
session(train, 12, disk)
model = session(train, 30, disk, resume=True)
with torch.no_grad():
    print(f"test mse {F.mse_loss(model(test[0]), test[1]).item():.4f}")
