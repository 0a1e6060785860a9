"""Monthly refresh of the invoice-default model: continue from last month's checkpoint on the newest invoices."""
import io
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Plan:
    name: str
    steps: int
    lr: float
    batch: int = 128


FIRST = Plan("history", steps=500, lr=4e-3)
REFRESH = Plan("refresh", steps=350, lr=1e-3)


def invoices(rows, shift, seed):
    """Numeric columns plus a sector code; `shift` moves the customers' behaviour (rates, sectors) over time."""
    g = torch.Generator().manual_seed(seed)
    num = torch.randn(rows, 8, generator=g)
    sector = torch.randint(0, 6, (rows,), generator=g)
    old = torch.tensor([1.2, -0.9, 0.0, 0.7, 0.0, 0.0, -0.5, 0.3])
    new = torch.tensor([0.2, -0.9, 1.3, 0.7, -1.0, 0.0, 0.4, 0.3])
    effect_old = torch.tensor([0.8, -0.6, 0.0, 0.4, -0.8, 0.2])
    effect_new = torch.tensor([-0.6, 0.6, 0.0, 0.9, -0.8, 0.2])
    logit = num @ (old + shift * (new - old)) + (effect_old + shift * (effect_new - effect_old))[sector]
    logit = 1.5 * logit + 0.8 * num[:, 0] * num[:, 3]
    return num, sector, (torch.rand(rows, generator=g) < torch.sigmoid(logit)).float()


class RiskNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.sector = nn.Embedding(6, 4)
        self.body = nn.Sequential(nn.Linear(12, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 1)

    def forward(self, num, sector):
        return self.head(self.body(torch.cat([num, self.sector(sector)], dim=1))).squeeze(1)


@torch.no_grad()
def report(model, data):
    num, sector, y = data
    model.eval()
    score = model(num, sector)
    rank = torch.empty(len(y))
    rank[score.argsort()] = torch.arange(1, len(y) + 1, dtype=torch.float32)
    pos = y.sum()
    auc = (rank[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))
    return F.binary_cross_entropy_with_logits(score, y).item(), auc.item()


def run_plan(plan, model, optimizer, scheduler, data):
    num, sector, y = data
    model.train()
    running = None
    for step in range(1, plan.steps + 1):
        rows = torch.randint(0, len(y), (plan.batch,))
        loss = F.binary_cross_entropy_with_logits(model(num[rows], sector[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 100 == 0:
            print(f"[{plan.name}] step {step:4d}  loss {running:.3f}")


def train_history(data):
    model = RiskNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=FIRST.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=FIRST.steps, eta_min=1e-5)
    run_plan(FIRST, model, optimizer, scheduler, data)
    blob = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, blob)
    return blob


def refresh(blob, data):
    blob.seek(0)
    state = torch.load(blob)
    model = RiskNet()
    model.load_state_dict(state["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=REFRESH.lr)
    optimizer.load_state_dict(state["optimizer"])        # keeps Adam's moments warm
    run_plan(REFRESH, model, optimizer, None, data)
    return model, optimizer


def main():
    torch.manual_seed(5)
    blob = train_history(invoices(6000, 0.0, seed=1))
    holdout = invoices(3000, 1.0, seed=3)
    blob.seek(0)
    last_month = RiskNet()
    last_month.load_state_dict(torch.load(blob)["model"])
    model, optimizer = refresh(blob, invoices(4000, 1.0, seed=2))
    before, after = report(last_month, holdout), report(model, holdout)
    print(f"newest month: before log-loss {before[0]:.3f} auc {before[1]:.3f}, after {after[0]:.3f} auc {after[1]:.3f}")


if __name__ == "__main__":
    main()
