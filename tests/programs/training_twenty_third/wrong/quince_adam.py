"""Optimizer week: Adam written from scratch, then used to train a small regressor in two sessions.

The lab machines log everybody out after a while, so the first session ends with a checkpoint.
"""
import io
import math

import torch
from torch import nn


class MyAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))
        self.t = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.t += 1
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            correction1 = 1 - beta1 ** self.t
            correction2 = 1 - beta2 ** self.t
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                m, v = state["m"], state["v"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                denom = v.sqrt().div_(math.sqrt(correction2)).add_(group["eps"])
                p.addcdiv_(m, denom, value=-group["lr"] / correction1)


def surface(n, generator):
    x = torch.rand(n, 4, generator=generator) * 4 - 2
    y = torch.sin(2 * x[:, :1]) * x[:, 1:2] + 0.5 * (x[:, 2:3] * x[:, 3:4]).tanh()
    return x, y + 0.05 * torch.randn(n, 1, generator=generator)


def build():
    torch.manual_seed(13)
    model = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    return model, MyAdam(model.parameters(), lr=3e-3)


def train_epochs(model, optimizer, data, first, last):
    x, y = data
    for epoch in range(first, last):
        # the order depends on the epoch only, so a resumed session sees the same batches
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        total = 0.0
        for idx in order.split(32):
            loss = (model(x[idx]) - y[idx]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch:2d}  mse {total / len(x):.4f}")


def save(file, model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, file)


def load(file, model, optimizer):
    file.seek(0)
    checkpoint = torch.load(file)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"]


def main():
    generator = torch.Generator().manual_seed(1)
    data, test = surface(1500, generator), surface(500, generator)

    print("session 1")
    model, optimizer = build()
    train_epochs(model, optimizer, data, 0, 15)
    disk = io.BytesIO()
    save(disk, model, optimizer, 15)

    print("session 2")
    model, optimizer = build()
    start = load(disk, model, optimizer)
    train_epochs(model, optimizer, data, start, 30)
    with torch.no_grad():
        mse = (model(test[0]) - test[1]).square().mean().item()
    print(f"test mse {mse:.4f}")
    return model, data


if __name__ == "__main__":
    model, data = main()
