"""Card fraud scoring: entity embeddings + numeric features, rare positives, auxiliary amount head."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    n_merchants: int = 50
    n_numeric: int = 12
    emb_dim: int = 8
    hidden: int = 64
    epochs: int = 12
    batch_size: int = 256
    lr: float = 2e-3
    alpha: float = 0.95
    gamma: float = 2.0
    aux_weight: float = 0.02
    seed: int = 5


class Transactions:
    def __init__(self, n, cfg, generator):
        g = generator
        self.merchant = torch.randint(cfg.n_merchants, (n,), generator=g)
        self.numeric = torch.randn(n, cfg.n_numeric, generator=g)
        risk = torch.sin(torch.arange(cfg.n_merchants) * 1.7)[self.merchant]
        x = self.numeric
        score = 1.6 * risk + 1.4 * x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3].abs() - 5.2
        self.label = (torch.rand(n, generator=g) < torch.sigmoid(1.5 * score)).float()
        self.amount = 0.5 * x[:, 4] + 0.3 * risk + 0.2 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, idx):
        return self.merchant[idx], self.numeric[idx], self.label[idx], self.amount[idx]


class FraudNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.n_merchants, cfg.emb_dim)
        self.trunk = nn.Sequential(
            nn.Linear(cfg.emb_dim + cfg.n_numeric, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
        )
        self.fraud = nn.Linear(cfg.hidden, 1)
        self.amount = nn.Linear(cfg.hidden, 1)

    def forward(self, merchant, numeric):
        h = self.trunk(torch.cat([self.emb(merchant), numeric], dim=1))
        return self.fraud(h).squeeze(1), self.amount(h).squeeze(1)


class FocalLoss(nn.Module):
    """Focal loss (Lin et al. 2017): easy transactions are weighted down, positives up by alpha."""

    def __init__(self, alpha, gamma):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        pt = torch.exp(-bce)
        alpha_t = self.alpha * target + (1 - self.alpha) * (1 - target)
        return (alpha_t * (1 - pt) ** self.gamma * bce).mean()


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    logits, _ = model(data.merchant, data.numeric)
    model.train()
    flagged, fraud = logits > 0, data.label > 0
    hits = (flagged & fraud).sum().item()
    recall, precision = hits / fraud.sum().item(), hits / max(flagged.sum().item(), 1)
    ranked = fraud[logits.argsort(descending=True)].float()
    ap = ((ranked.cumsum(0) / torch.arange(1, len(ranked) + 1)) * ranked).sum() / ranked.sum()
    return {"recall": recall, "precision": precision, "ap": ap.item()}


def train(cfg):
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(cfg.seed)
    train_set, test_set = Transactions(12000, cfg, g), Transactions(12000, cfg, g)
    model, criterion = FraudNet(cfg), FocalLoss(cfg.alpha, cfg.gamma)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        for idx in torch.randperm(len(train_set)).split(cfg.batch_size):
            merchant, numeric, label, amount = train_set[idx]
            logits, amount_hat = model(merchant, numeric)
            loss = criterion(logits, label) + cfg.aux_weight * F.smooth_l1_loss(amount_hat, amount)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 4 == 3:
            stats = evaluate(model, test_set)
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  " + "  ".join(f"{k} {v:.3f}" for k, v in stats.items()))
    print(f"positives in training: {train_set.label.mean().item():.3%}")
    return model, evaluate(model, test_set)


if __name__ == "__main__":
    model, result = train(Config())
