"""User embeddings for a shop: two embedding tables, BPR loss on hard negatives drawn from a candidate pool."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    n_users: int = 400
    n_items: int = 300
    dim: int = 16
    per_user: int = 20
    pool: int = 20
    hard: int = 5
    temperature: float = 0.2
    steps: int = 900
    batch_size: int = 256
    lr: float = 0.03
    weight_decay: float = 1e-4
    seed: int = 21


def simulate(cfg):
    rng = np.random.default_rng(cfg.seed)
    u, v = rng.normal(size=(cfg.n_users, 4)), rng.normal(size=(cfg.n_items, 4))
    utility = 3 * u @ v.T + rng.gumbel(size=(cfg.n_users, cfg.n_items))
    bought = np.argsort(-utility, axis=1)[:, : cfg.per_user]
    bought = rng.permuted(bought, axis=1)
    return torch.tensor(bought[:, :-4]), torch.tensor(bought[:, -4:])


class UserItemModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = nn.Embedding(cfg.n_users, cfg.dim)
        self.item = nn.Embedding(cfg.n_items, cfg.dim)
        self.temperature = cfg.temperature

    def forward(self, users, items):
        """Scores of items (batch, k) for users (batch,): cosine over temperature."""
        u, v = F.normalize(self.user(users), dim=-1), F.normalize(self.item(items), dim=-1)
        return (u[:, None] * v).sum(-1) / self.temperature


class HardNegatives:
    """Scores a random pool for each user and keeps the best scored items that the user has not bought."""

    def __init__(self, cfg, bought):
        self.cfg = cfg
        self.owned = torch.zeros(cfg.n_users, cfg.n_items, dtype=torch.bool)
        self.owned.scatter_(1, bought, True)

    @torch.no_grad()
    def __call__(self, model, users):
        pool = torch.randint(self.cfg.n_items, (len(users), self.cfg.pool))
        scores = model(users, pool).masked_fill(self.owned[users].gather(1, pool), -1e4)
        top = scores.topk(self.cfg.hard, dim=1)
        return top.values


def bpr(positive, negative):
    return F.softplus(negative - positive).mean()


@torch.no_grad()
def recall(model, seen, held_out, k=20):
    users = torch.arange(len(seen))
    scores = F.normalize(model.user(users), dim=-1) @ F.normalize(model.item.weight, dim=-1).T
    top = scores.scatter(1, seen, -1e9).topk(k, dim=1).indices
    return (held_out[:, :, None] == top[:, None, :]).any(-1).float().mean().item()


class Trainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.seen, self.held_out = simulate(cfg)
        self.model = UserItemModel(cfg)
        self.miner = HardNegatives(cfg, self.seen)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)

    def step(self):
        users = torch.randint(self.cfg.n_users, (self.cfg.batch_size,))
        items = self.seen[users, torch.randint(self.seen.shape[1], users.shape)]
        negative = self.miner(self.model, users)
        positive = self.model(users, items[:, None])
        loss = bpr(positive, negative)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self):
        for step in range(self.cfg.steps):
            loss = self.step()
            if step % 150 == 149:
                print(f"step {step + 1:4d}  loss {loss:.3f}  recall@20 {recall(self.model, self.seen, self.held_out):.3f}")


if __name__ == "__main__":
    trainer = Trainer(Config())
    print(f"before training: recall@20 {recall(trainer.model, trainer.seen, trainer.held_out):.3f}")
    trainer.fit()
