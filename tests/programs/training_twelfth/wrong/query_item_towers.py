"""Two-tower product search: a query encoder and an item encoder, trained with in-batch negatives."""
import copy
from dataclasses import dataclass, field

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class TowerConfig:
    n_features: int = 32
    hidden: int = 64
    dim: int = 32
    dropout: float = 0.0
    activation: nn.Module = field(default_factory=nn.ReLU)


@dataclass
class SearchConfig:
    query: TowerConfig = field(default_factory=lambda: TowerConfig(n_features=24))
    item: TowerConfig = field(default_factory=lambda: TowerConfig(n_features=48))
    steps: int = 400
    batch_size: int = 128
    lr: float = 3e-3
    temperature: float = 0.1
    seed: int = 11


class Tower(nn.Module):
    def __init__(self, cfg: TowerConfig, norm: nn.Module = nn.BatchNorm1d(64)):
        super().__init__()
        self.proj = nn.Linear(cfg.n_features, cfg.hidden)
        self.norm = norm
        self.act = copy.deepcopy(cfg.activation)
        self.drop = nn.Dropout(cfg.dropout)
        self.head = nn.Linear(cfg.hidden, cfg.dim)

    def forward(self, x):
        h = self.drop(self.act(self.norm(self.proj(x))))
        return F.normalize(self.head(h), dim=-1)


class SearchModel(nn.Module):
    def __init__(self, cfg: SearchConfig):
        super().__init__()
        self.query_tower = Tower(cfg.query)
        self.item_tower = Tower(cfg.item)
        self.temperature = cfg.temperature

    def forward(self, q, i):
        return self.query_tower(q) @ self.item_tower(i).T / self.temperature


class ClickLog:
    """Clicked (query, item) pairs: both sides are noisy views of one intent vector."""

    def __init__(self, cfg, n=4000, intent=8):
        self.intent = torch.randn(n, intent)
        q_map, i_map = torch.randn(intent, cfg.query.n_features), torch.randn(intent, cfg.item.n_features)
        self.queries = torch.tanh(self.intent @ q_map * 0.4) + 0.3 * torch.randn(n, cfg.query.n_features)
        # item features are raw catalogue counts, so they are positive and larger
        self.items = F.softplus(self.intent @ i_map) * 1.5 + 0.5 * torch.randn(n, cfg.item.n_features)
        self.n_train = n - 500

    def batch(self, size):
        idx = torch.randint(self.n_train, (size,))
        return self.queries[idx], self.items[idx]

    def test(self):
        return self.queries[self.n_train:], self.items[self.n_train:]


@torch.no_grad()
def recall_at(model, data, k):
    model.eval()
    scores = model(*data.test())
    top = scores.topk(k, dim=1).indices
    model.train()
    return (top == torch.arange(len(scores))[:, None]).any(1).float().mean().item()


def main():
    cfg = SearchConfig()
    torch.manual_seed(cfg.seed)
    data = ClickLog(cfg)
    model = SearchModel(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.steps)
    for step in range(cfg.steps):
        logits = model(*data.batch(cfg.batch_size))
        target = torch.arange(cfg.batch_size)
        loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 100 == 99:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}  recall@10 {recall_at(model, data, 10):.3f}")
    return model, data


if __name__ == "__main__":
    model, data = main()
    print(f"recall@1 {recall_at(model, data, 1):.3f}  recall@10 {recall_at(model, data, 10):.3f}")
