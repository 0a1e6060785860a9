"""Time until a tenant moves out: a Cox model with a small network, trained on mini-batches of leases."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def simulate(n, generator):
    """Months of tenure, most of the leases are still running (censored)."""
    x = torch.randn(n, 8, generator=generator)
    log_hazard = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.8 * (x[:, 2] * x[:, 3]).clamp(-2, 2)
    moved = -torch.rand(n, generator=generator).clamp_min(1e-6).log() / log_hazard.exp() * 24
    # the newer the building (column 4), the shorter its leases have been followed
    watched = -torch.rand(n, generator=generator).clamp_min(1e-6).log() * 6 * (-1.2 * x[:, 4]).exp()
    event = moved <= watched
    return x, torch.minimum(moved, watched), event.float()


class CoxLoss(nn.Module):
    """Negative log partial likelihood (Breslow); the risk set is taken within the batch."""

    def forward(self, log_risk, time, event):
        order = torch.argsort(time, descending=True)
        log_risk = log_risk[order]
        log_at_risk = torch.logcumsumexp(log_risk, dim=0)
        return -((log_risk - log_at_risk) * event).sum() / event.sum().clamp_min(1.0)


class TenureNet(nn.Module):
    def __init__(self, features, width=32, dropout=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width), nn.SELU(), nn.Dropout(dropout),
            nn.Linear(width, width), nn.SELU(),
        )
        # the baseline hazard absorbs any constant, hence no bias here
        self.head = nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


@torch.no_grad()
def concordance(model, x, time, event):
    """Share of comparable pairs in which the one who left first has the higher risk."""
    model.eval()
    risk = model(x)
    comparable = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    right = (risk[:, None] > risk[None, :]) & comparable
    return (right.sum() / comparable.sum()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--leases", type=int, default=2400)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args([])

    torch.manual_seed(args.seed)
    data = TensorDataset(*simulate(args.leases, torch.Generator().manual_seed(args.seed)))
    held_out = args.leases // 4
    train, valid = random_split(data, [args.leases - held_out, held_out])
    valid_x, valid_time, valid_event = data[valid.indices]

    model = TenureNet(features=8)
    criterion = CoxLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, time, event in loader:
            loss = criterion(model(x), time, event)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        scheduler.step()
        if epoch % 5 == 4:
            c_index = concordance(model, valid_x, valid_time, valid_event)
            print(f"epoch {epoch + 1:3d}  loss {running / len(loader):.4f}  c-index {c_index:.3f}")


if __name__ == "__main__":
    main()
