"""Two-stage tide-gauge regression: long pretraining on the old harbor, then a short finetune on the rebuilt one."""
import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def gauge_data(n, seed, rebuilt):
    """Water level as a function of moon phase, sun phase, pressure and wind. Dredging changed gain and delay."""
    g = torch.Generator().manual_seed(seed)
    phase = torch.rand(n, 2, generator=g) * 6.2832
    weather = torch.randn(n, 2, generator=g)
    gain, delay = (1.5, 0.7) if rebuilt else (1.0, 0.0)
    level = gain * torch.cos(phase[:, 0] - delay) + 0.4 * gain * torch.cos(phase[:, 1] - delay)
    level = level - 0.3 * weather[:, 0] + 0.1 * weather[:, 1] * weather[:, 0].tanh()
    level = level + 0.05 * torch.randn(n, generator=g)
    x = torch.cat([phase.sin(), phase.cos(), weather], dim=1)
    return TensorDataset(x, level.unsqueeze(1))


def build_model(hidden=48):
    return nn.Sequential(
        nn.Linear(6, hidden), nn.SiLU(),
        nn.Linear(hidden, hidden), nn.SiLU(),
        nn.Linear(hidden, 1),
    )


def run_epoch(model, loader, optimizer, scheduler=None):
    model.train()
    total, seen = 0.0, 0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total += loss.item() * len(x)
        seen += len(x)
    return total / seen


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    x, y = dataset.tensors
    return nn.functional.mse_loss(model(x), y).sqrt().item()


def pretrain(args, path):
    loader = DataLoader(gauge_data(2048, seed=1, rebuilt=False), batch_size=64, shuffle=True)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=args.epochs * len(loader), eta_min=1e-6)
    for epoch in range(args.epochs):
        loss = run_epoch(model, loader, optimizer, scheduler)
    print(f"pretraining: {args.epochs} epochs, final loss {loss:.4f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": args.epochs}, path)


def finetune(args, path):
    train_set = gauge_data(512, seed=2, rebuilt=True)
    val_set = gauge_data(512, seed=3, rebuilt=True)
    loader = DataLoader(train_set, batch_size=64, shuffle=True)

    checkpoint = torch.load(path, weights_only=True)
    model = build_model()
    model.load_state_dict(checkpoint["model"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.finetune_lr, weight_decay=1e-4)
    # keep the moment estimates, otherwise the first finetuning steps are noisy
    optimizer.load_state_dict(checkpoint["optimizer"])

    print(f"finetuning from epoch {checkpoint['epoch']} with lr {args.finetune_lr}")
    before = evaluate(model, val_set)
    for epoch in range(args.finetune_epochs):
        loss = run_epoch(model, loader, optimizer)
        print(f"  epoch {epoch + 1:2d}  train loss {loss:.4f}  val rmse {evaluate(model, val_set):.4f}")
    after = evaluate(model, val_set)
    print(f"rebuilt harbor: rmse {before:.4f} -> {after:.4f}")
    return model, optimizer, before, after


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--finetune-lr", type=float, default=1e-3)
    parser.add_argument("--finetune-epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "old_harbor.pt")
        pretrain(args, path)
        return finetune(args, path)


if __name__ == "__main__":
    model, optimizer, before, after = main()
