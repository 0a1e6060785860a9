"""Customer churn from tabular features: a small MLP with embeddings for the categorical columns."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


@dataclass
class Config:
    rows: int = 1500
    numeric: int = 8
    plans: int = 5
    hidden: int = 48
    dropout: float = 0.5
    lr: float = 3e-3
    epochs: int = 12
    seed: int = 0


def churn_data(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    num = torch.randn(cfg.rows, cfg.numeric, generator=gen)
    plan = torch.randint(cfg.plans, (cfg.rows,), generator=gen)
    w = torch.randn(cfg.numeric, generator=gen)
    effect = 2 * torch.randn(cfg.plans, generator=gen)
    score = num @ w + effect[plan] + num[:, 0] * num[:, 1]
    y = (score > score.median()).float()
    return num, plan, y


class ChurnNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.p = cfg.dropout
        self.plan = nn.Embedding(cfg.plans, 4)
        self.fc1 = nn.Linear(cfg.numeric + 4, cfg.hidden)
        self.fc2 = nn.Linear(cfg.hidden, cfg.hidden)
        self.head = nn.Linear(cfg.hidden, 1)

    def forward(self, num, plan):
        x = torch.cat([num, self.plan(plan)], dim=1)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, self.p)
        x = F.relu(self.fc2(x))
        x = F.dropout(x, self.p)
        return self.head(x).squeeze(1)


def accuracy(model, data):
    model.eval()
    num, plan, y = data
    with torch.no_grad():
        pred = model(num, plan) > 0
    return (pred == y.bool()).float().mean().item()


def fit(cfg):
    torch.manual_seed(cfg.seed)
    num, plan, y = churn_data(cfg)
    cut = int(0.7 * cfg.rows)
    train_set = TensorDataset(num[:cut], plan[:cut], y[:cut])
    test = (num[cut:], plan[cut:], y[cut:])
    model = ChurnNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for b_num, b_plan, b_y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = F.binary_cross_entropy_with_logits(model(b_num, b_plan), b_y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(b_y)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d} loss {running / cut:.4f} test acc {accuracy(model, test):.3f}")
    return model, test


def main():
    model, test = fit(Config())
    acc = accuracy(model, test)
    with torch.no_grad():
        risk = torch.sigmoid(model(test[0][:5], test[1][:5]))
    print("test accuracy", round(acc, 3))
    print("risk of the first customers", [round(r, 3) for r in risk.tolist()])
    return model, test, acc


if __name__ == "__main__":
    model, test, acc = main()
