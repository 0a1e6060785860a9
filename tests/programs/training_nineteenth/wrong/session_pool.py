"""Next-item recommendation from a shop session: items are pooled by learned attention, scored against the catalogue."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence


@dataclass
class Config:
    n_items: int = 200
    n_topics: int = 10
    dim: int = 32
    max_len: int = 14
    batch_size: int = 128
    epochs: int = 6
    lr: float = 5e-3
    seed: int = 3


def make_sessions(n, cfg, generator):
    """Item ids start at 1. Every topic has accessories (first items of the topic) and main products (the others). A
    visitor looks at many accessories of any topic and at a few main products of one topic, and buys from that topic."""
    per_topic = cfg.n_items // cfg.n_topics
    sessions, bought = [], []
    for _ in range(n):
        topic = torch.randint(cfg.n_topics, (1,), generator=generator).item()
        length = torch.randint(6, cfg.max_len + 1, (1,), generator=generator).item()
        other = torch.randint(cfg.n_topics, (length,), generator=generator)
        items = other * per_topic + torch.randint(per_topic // 2, (length,), generator=generator)
        main = torch.randperm(length, generator=generator)[:2]
        items[main] = topic * per_topic + torch.randint(per_topic // 2, per_topic, (2,), generator=generator)
        sessions.append(items + 1)
        bought.append(topic * per_topic + torch.randint(per_topic // 2, per_topic, (1,), generator=generator).item())
    return pad_sequence(sessions, batch_first=True), torch.tensor(bought)


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, x, mask):
        logits = self.score(x).masked_fill(~mask.unsqueeze(-1), -1e4)
        weights = torch.softmax(logits, dim=-1)
        weights = weights * mask.unsqueeze(-1)
        return (weights * x).sum(dim=1), weights.squeeze(-1)


class SessionModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.items = nn.Embedding(cfg.n_items + 1, cfg.dim, padding_idx=0)
        self.pool = AttentionPool(cfg.dim)
        self.norm = nn.LayerNorm(cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.n_items)

    def forward(self, sessions):
        mask = sessions != 0
        pooled, weights = self.pool(self.items(sessions), mask)
        return self.out(self.norm(pooled)), weights


def hit_rate(logits, target, k=10):
    return (logits.topk(k, dim=1).indices == target.unsqueeze(1)).any(dim=1).float().mean().item()


def train(cfg):
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed)
    sessions, bought = make_sessions(4000, cfg, generator)
    val_sessions, val_bought = make_sessions(1500, cfg, generator)
    model = SessionModel(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    history = []
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(bought), generator=generator).split(cfg.batch_size):
            logits, _ = model(sessions[rows])
            loss = F.cross_entropy(logits, bought[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            logits, _ = model(val_sessions)
            val_loss = F.cross_entropy(logits, val_bought).item()
            hits = hit_rate(logits, val_bought)
        history.append(val_loss)
        print(f"epoch {epoch}  train {total / len(bought):.4f}  val {val_loss:.4f}  hit@10 {hits:.3f}")
    return model, min(history), hits, val_sessions


if __name__ == "__main__":
    model, best_loss, final_hits, val_sessions = train(Config())
    print(f"best val loss {best_loss:.4f}")
