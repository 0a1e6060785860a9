"""Two runs of one project: train on old sites, later continue from the file on newly collected sites."""
import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn


class SiteModel(nn.Module):
    def __init__(self, n_in=12, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, width), nn.GELU(), nn.LayerNorm(width),
                                     nn.Linear(width, width), nn.GELU())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.encoder(x)).squeeze(-1)


def survey(n, shift, g):
    """Ore grade from soil readings; `shift` moves the geology of the region."""
    x = torch.randn(n, 12, generator=g)
    y = torch.sin(x[:, 0] + shift) + 0.5 * x[:, 1] * x[:, 2] + (0.3 + shift) * x[:, 3].abs()
    return x, y + 0.05 * torch.randn(n, generator=g)


class Trainer:
    def __init__(self, model, lr, weight_decay=1e-4):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.step = 0

    def epoch(self, x, y, g, batch=64, scheduler=None):
        self.model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=g).split(batch):
            loss = F.mse_loss(self.model(x[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if scheduler is not None:
                scheduler.step()
            self.step += 1
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return F.mse_loss(self.model(x), y).item()

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, path)

    def load(self, path):
        ckpt = torch.load(path, map_location="cpu")
        self.model.load_state_dict(ckpt["model"])
        self.opt.load_state_dict(ckpt["opt"])
        self.step = ckpt["step"]


def first_run(args, path):
    g = torch.Generator().manual_seed(args.seed)
    x, y = survey(2000, 0.0, g)
    x_val, y_val = survey(500, 0.0, g)
    trainer = Trainer(SiteModel(), args.lr)
    n_steps = args.epochs * -(-len(x) // 64)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(trainer.opt, n_steps, eta_min=args.lr * 1e-3)
    for epoch in range(args.epochs):
        loss = trainer.epoch(x, y, g, scheduler=scheduler)
        print(f"old sites  epoch {epoch:2d}  train {loss:.4f}  val {trainer.evaluate(x_val, y_val):.4f}")
    trainer.save(path)


def second_run(args, path):
    g = torch.Generator().manual_seed(args.seed + 1)
    x, y = survey(1200, 0.8, g)
    x_val, y_val = survey(500, 0.8, g)
    trainer = Trainer(SiteModel(), args.tune_lr)
    trainer.load(path)
    print(f"continuing at step {trainer.step} with lr {args.tune_lr:g}, val {trainer.evaluate(x_val, y_val):.4f}")
    for epoch in range(args.tune_epochs):
        loss = trainer.epoch(x, y, g)
        print(f"new sites  epoch {epoch:2d}  train {loss:.4f}  val {trainer.evaluate(x_val, y_val):.4f}")
    return trainer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--tune-lr", type=float, default=1e-3)
    ap.add_argument("--tune-epochs", type=int, default=8)
    ap.add_argument("--seed", type=int, default=5)
    args, _ = ap.parse_known_args()
    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "site_model.pt")
        first_run(args, path)
        trainer = second_run(args, path)


if __name__ == "__main__":
    main()
