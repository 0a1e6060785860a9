"""Next-track recommender over listening sessions (GRU4Rec-style), trained from a raw event log."""
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


@dataclass
class Config:
    n_sessions: int = 1100
    dim: int = 24
    epochs: int = 8
    batch: int = 64
    lr: float = 5e-3
    seed: int = 4


def simulate_log(cfg):
    """Sessions of track codes; every track has a favourite follow-up that depends on the listening mood."""
    rng = np.random.default_rng(cfg.seed)
    codes = [f"T{n:04d}" for n in rng.permutation(9000)[:40]]
    popularity = 1.0 / np.arange(1, 41) ** 0.9
    popularity /= popularity.sum()
    follow = rng.integers(1, 40, size=40)
    sessions = []
    for _ in range(cfg.n_sessions):
        cur, tracks = rng.choice(40, p=popularity), []
        for _ in range(rng.integers(4, 10)):
            tracks.append(codes[cur])
            cur = follow[cur] if rng.random() < 0.75 else rng.choice(40, p=popularity)
        sessions.append(tracks)
    return sessions


def build_vocab(sessions):
    counts = Counter(code for s in sessions for code in s)
    return {code: idx for idx, (code, _) in enumerate(counts.most_common())}


class SessionModel(nn.Module):
    def __init__(self, n_tokens, dim):
        super().__init__()
        self.tracks = nn.Embedding(n_tokens, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n_tokens)

    def forward(self, seq):
        h, _ = self.gru(self.tracks(seq))
        return self.out(h)


def to_batch(rows):
    x = pad_sequence([r[:-1] for r in rows], batch_first=True, padding_value=0)
    y = pad_sequence([r[1:] for r in rows], batch_first=True, padding_value=0)
    return x, y


def session_loss(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)


@torch.no_grad()
def hit_rate(model, rows, k=1):
    """Share of true next tracks among the top k, one session at a time (no padding involved)."""
    model.eval()
    hits = seen = 0
    for r in rows:
        top = model(r[None, :-1])[0].topk(k, dim=-1).indices
        hits += (top == r[1:, None]).any(-1).sum().item()
        seen += len(r) - 1
    return hits / seen


def train(cfg):
    torch.manual_seed(cfg.seed)
    sessions = simulate_log(cfg)
    vocab = build_vocab(sessions)
    rows = [torch.tensor([vocab[c] for c in s]) for s in sessions]
    split = int(0.85 * len(rows))
    train_rows, test_rows = rows[:split], rows[split:]
    model = SessionModel(len(vocab) + 1, cfg.dim)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for chunk in torch.randperm(split).split(cfg.batch):
            x, y = to_batch([train_rows[i] for i in chunk.tolist()])
            loss = session_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item() * len(chunk)
        print(f"epoch {epoch + 1}  loss {total / split:.3f}  hit@1 {hit_rate(model, test_rows):.3f}")
    return model, vocab, test_rows


if __name__ == "__main__":
    config = Config()
    model, vocab, test_rows = train(config)
    print(f"tracks {len(vocab)}  hit@5 {hit_rate(model, test_rows, k=5):.3f}")
