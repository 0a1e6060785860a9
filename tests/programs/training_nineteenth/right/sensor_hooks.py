"""Remaining-useful-life regression on sensor windows. Every parameter owns a small optimizer that is run from a hook as
soon as its gradient is ready, so that the gradients of the whole model are never in memory together."""
import math

import torch
from torch import nn
from torch.nn import functional as F

WINDOW, CHANNELS, BATCH, STEPS = 32, 5, 64, 240


def make_windows(n, generator):
    """Vibration grows and temperature drifts as a machine wears."""
    life = torch.rand(n, generator=generator)
    wear = 1 - life
    t = torch.arange(WINDOW) / WINDOW
    x = 0.3 * torch.randn(n, CHANNELS, WINDOW, generator=generator)
    phase = 2 * math.pi * torch.rand(n, 1, generator=generator)
    x[:, 0] += (0.2 + wear.unsqueeze(1)) * torch.sin(2 * math.pi * 4 * t + phase)
    x[:, 1] += wear.unsqueeze(1).square() * t * 2
    x[:, 2] += (wear > 0.6).float().unsqueeze(1) * torch.sin(2 * math.pi * 10 * t)
    return x, life


class WearNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(CHANNELS, 24, 5, padding=2),
            nn.GroupNorm(4, 24),
            nn.ReLU(),
            nn.Conv1d(24, 32, 5, stride=2, padding=2),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.conv(x)
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], dim=1)).squeeze(1)


class FusedTrainer:
    def __init__(self, model, lr, total_steps):
        self.model = model
        self.optimizers, self.schedulers = {}, []
        for name, p in model.named_parameters():
            decay = 0.01 if p.ndim > 1 else 0.0
            optimizer = torch.optim.AdamW([p], lr=lr, weight_decay=decay, foreach=False)
            self.optimizers[p] = optimizer
            self.schedulers.append(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total_steps))
            p.register_post_accumulate_grad_hook(self.apply)

    def apply(self, p):
        norm = p.grad.norm()
        if norm > 1.0:
            p.grad.mul_(1.0 / norm)
        self.optimizers[p].step()
        p.grad = None

    def train_step(self, x, y):
        loss = F.smooth_l1_loss(self.model(x), y, beta=0.1)
        loss.backward()
        for scheduler in self.schedulers:
            scheduler.step()
        return loss.item()

    def state_dict(self):
        names = {p: n for n, p in self.model.named_parameters()}
        return {
            "model": self.model.state_dict(),
            "optimizers": {names[p]: o.state_dict() for p, o in self.optimizers.items()},
        }


@torch.no_grad()
def rmse(model, x, y):
    return (model(x) - y).square().mean().sqrt().item()


if __name__ == "__main__":
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(8)
    train_x, train_y = make_windows(3000, generator)
    val_x, val_y = make_windows(800, generator)
    model = WearNet()
    trainer = FusedTrainer(model, lr=3e-3, total_steps=STEPS)
    print(f"start  rmse {rmse(model, val_x, val_y):.4f}")
    for step in range(STEPS):
        rows = torch.randint(len(train_y), (BATCH,), generator=generator)
        loss = trainer.train_step(train_x[rows], train_y[rows])
        if step % 60 == 59:
            print(f"step {step + 1}  loss {loss:.4f}  rmse {rmse(model, val_x, val_y):.4f}")
    print(f"checkpoint holds {len(trainer.state_dict()['optimizers'])} optimizer states")
