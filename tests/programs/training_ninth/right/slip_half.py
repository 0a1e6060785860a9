"""Slip detection from a fingertip's tactile array, computed in half precision with single-precision master weights."""
import torch
import torch.nn.functional as F
from torch import nn


def presses(n, gen):
    """Two frames of an 8x8 array; in slipping grasps the pressure patch moves between them."""
    centre = torch.rand(n, 1, 1, 2, generator=gen) * 4 + 2
    grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij"), dim=-1)[None]
    slip = torch.randint(0, 2, (n,), generator=gen)
    angle = torch.rand(n, generator=gen) * 6.2832
    shift = 0.9 * torch.stack([angle.cos(), angle.sin()], dim=1)[:, None, None] * slip[:, None, None, None]
    frames = [torch.exp(-(grid - c).pow(2).sum(-1) / 3.0) for c in (centre, centre + shift)]
    x = torch.stack(frames, dim=1) + 0.05 * torch.randn(n, 2, 8, 8, generator=gen)
    return x.flatten(1), slip


class SlipNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.inp = nn.Linear(128, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        h = F.relu(self.inp(x))
        h = h + F.relu(self.mid(h))
        return self.out(h).float()


class MasterWeights:
    """Holds float32 copies of a half-precision model; steps on them and writes the result back."""

    def __init__(self, model, make_optimizer, scale=2.0 ** 22, patience=40):
        self.model = [p for p in model.parameters()]
        self.master = [p.detach().float().clone().requires_grad_() for p in self.model]
        self.optimizer = make_optimizer(self.master)
        self.scale, self.patience = scale, patience
        self.calm = self.skipped = self.taken = 0

    def step(self, loss):
        (loss * self.scale).backward()
        grads = [p.grad.float() / self.scale for p in self.model]
        for p in self.model:
            p.grad = None
        if not all(g.isfinite().all() for g in grads):
            self.scale /= 2
            self.calm = 0
            self.skipped += 1
            return False
        for m, g in zip(self.master, grads):
            m.grad = g
        torch.nn.utils.clip_grad_norm_(self.master, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for p, m in zip(self.model, self.master):
                p.copy_(m)
        self.taken += 1
        self.calm += 1
        if self.calm >= self.patience:
            self.scale, self.calm = self.scale * 2, 0
        return True


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x.half()).argmax(1) == y).float().mean().item()


def main(epochs=12, batch=64):
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(14)
    (x, y), (xt, yt) = presses(2000, gen), presses(800, gen)
    model = SlipNet().half()
    weights = MasterWeights(model, lambda ps: torch.optim.AdamW(ps, lr=1.5e-3, weight_decay=0.02))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(weights.optimizer, epochs * 32)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            loss = F.cross_entropy(model(x[idx].half()), y[idx])
            if weights.step(loss):
                scheduler.step()
            total += loss.item() * len(idx) / len(x)
        if epoch % 3 == 0:
            print(f"{epoch:3d}  loss {total:.4f}  scale 2^{torch.tensor(weights.scale).log2().item():.0f}  skipped {weights.skipped}")
    return model, weights, accuracy(model, xt, yt)


if __name__ == "__main__":
    model, weights, acc = main()
    print(f"test accuracy {acc:.3f}  steps {weights.taken}  skipped {weights.skipped}")
