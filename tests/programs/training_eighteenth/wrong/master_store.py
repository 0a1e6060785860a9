"""Half-precision training with fp32 master weights, preempted and resumed from a checkpoint.

Task: regress the steady temperature field of a heated plate at sensor points from source parameters.
"""
import io

import torch
import torch.nn as nn


def plate(n, gen):
    """Four point sources with random strength; 24 sensors on a circle."""
    angle = torch.linspace(0, 6.2832, 25)[:-1]
    sensors = torch.stack([angle.cos(), angle.sin()], 1)
    sources = (torch.rand(n, 4, 2, generator=gen) - 0.5) * 1.2
    strength = torch.randn(n, 4, generator=gen)
    dist = (sources[:, :, None] - sensors).norm(dim=-1)
    field = (strength[:, :, None] * -torch.log(dist + 0.05)).sum(1)
    return torch.cat([sources.flatten(1), strength], 1), field


class MixedPrecisionOptimizer:
    """Low-precision model weights, fp32 master copies for the update, static loss scale."""

    def __init__(self, model, make_inner, loss_scale=128.0):
        self.model_params = list(model.parameters())
        self.master = [p.detach().clone().float() for p in self.model_params]
        self.inner = make_inner(self.master)
        self.loss_scale = loss_scale

    def backward(self, loss):
        (loss * self.loss_scale).backward()

    @torch.no_grad()
    def step(self):
        for m, p in zip(self.master, self.model_params):
            m.grad = p.grad.float() / self.loss_scale
        torch.nn.utils.clip_grad_norm_(self.master, 5.0)
        self.inner.step()
        for m, p in zip(self.master, self.model_params):
            p.copy_(m)
            p.grad = None

    def state_dict(self):
        return {"inner": self.inner.state_dict(), "loss_scale": self.loss_scale}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])
        self.loss_scale = state["loss_scale"]


class Trainer:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(12, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 24)
        ).to(torch.bfloat16)
        self.optim = MixedPrecisionOptimizer(self.model, lambda ps: torch.optim.Adam(ps, lr=2e-3))
        self.epoch = 0
        gen = torch.Generator().manual_seed(7)
        self.train_set, self.valid_set = plate(1536, gen), plate(512, gen)
        self.history = []

    def train_epoch(self):
        x, y = self.train_set
        gen = torch.Generator().manual_seed(1000 + self.epoch)
        for idx in torch.randperm(len(x), generator=gen).split(128):
            pred = self.model(x[idx].bfloat16()).float()
            self.optim.backward((pred - y[idx]).square().mean())
            self.optim.step()
        self.epoch += 1
        self.history.append(self.validate())

    @torch.no_grad()
    def validate(self):
        x, y = self.valid_set
        return (self.model(x.bfloat16()).float() - y).square().mean().item()

    def save(self, f):
        torch.save({"model": self.model.state_dict(), "optim": self.optim.state_dict(), "epoch": self.epoch}, f)

    def load(self, f):
        ckpt = torch.load(f)
        self.model.load_state_dict(ckpt["model"])
        self.optim.load_state_dict(ckpt["optim"])
        self.epoch = ckpt["epoch"]


first = Trainer(seed=0)
for _ in range(20):
    first.train_epoch()
checkpoint = io.BytesIO()
first.save(checkpoint)
print(f"job 1 stops after epoch {first.epoch}: valid mse {first.history[-1]:.4f}")

checkpoint.seek(0)
second = Trainer(seed=1)
second.load(checkpoint)
print(f"job 2 loaded epoch {second.epoch}: valid mse {second.validate():.4f}")
for _ in range(4):
    second.train_epoch()
print(f"job 2 ends after epoch {second.epoch}: valid mse {second.history[-1]:.4f}")
