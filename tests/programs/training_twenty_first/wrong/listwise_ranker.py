"""Learning to rank for product search: a listwise (ListNet) ranker over result lists of unequal length.

Queries return between 3 and 28 products; every list is padded to the 32 slots of a result page.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
rng = np.random.default_rng(5)

N_FEATURES, MAX_DOCS, SLOTS = 14, 28, 32


def make_queries(n, preference):
    """Products with graded relevance; what shoppers want differs from query to query."""
    queries = []
    for _ in range(n):
        n_docs = int(rng.integers(3, MAX_DOCS + 1))
        features = rng.normal(size=(n_docs, N_FEATURES))
        segment = rng.normal()  # cheap or premium query: shows only in the list as a whole
        features[:, 3] = segment + 1.5 * features[:, 3]
        taste = 0.5 * features @ preference - 0.4 * features[:, 2] ** 2 + 2.0 * segment * features[:, 4]
        taste = taste + 0.3 * rng.normal(size=n_docs)
        ranks = taste.argsort().argsort()
        grades = np.floor(5 * ranks / n_docs).clip(0, 4)
        queries.append((features.astype(np.float32), grades.astype(np.float32)))
    return queries


def pad(batch):
    x = torch.zeros(len(batch), SLOTS, N_FEATURES)
    grades = torch.zeros(len(batch), SLOTS)
    valid = torch.zeros(len(batch), SLOTS, dtype=torch.bool)
    for i, (features, g) in enumerate(batch):
        x[i, : len(g)] = torch.from_numpy(features)
        grades[i, : len(g)] = torch.from_numpy(g)
        valid[i, : len(g)] = True
    return x, grades, valid


class Ranker(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(N_FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.context = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, 1)

    def forward(self, x, valid):
        h = self.embed(x)
        seen, _ = self.context(h, h, h, key_padding_mask=valid, need_weights=False)
        return self.score(self.norm(h + seen)).squeeze(-1)


def listnet_loss(scores, grades, valid):
    target = F.softmax(grades.masked_fill(~valid, float("-inf")), dim=1)
    log_prob = F.log_softmax(scores.masked_fill(~valid, -1e9), dim=1)
    return -(target * log_prob).sum(dim=1).mean()


def ndcg(scores, grades, valid, k=5):
    scores = scores.masked_fill(~valid, -1e9)
    discount = 1 / torch.log2(torch.arange(k) + 2.0)

    def gain(order):
        return ((2 ** grades.gather(1, order[:, :k]) - 1) * discount).sum(1)

    return gain(scores.argsort(1, descending=True)) / gain(grades.argsort(1, descending=True)).clamp(min=1e-9)


def evaluate(model, queries):
    model.eval()
    with torch.no_grad():
        values = [ndcg(model(x, valid), grades, valid) for x, grades, valid in map(pad, chunks(queries, 100))]
    model.train()
    return torch.cat(values).mean().item()


def chunks(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


preference = np.where(np.arange(N_FEATURES) >= 5, rng.normal(size=N_FEATURES), 0.0) * 0.7
train_queries, test_queries = make_queries(1200, preference), make_queries(300, preference)

model = Ranker()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    shuffled = [train_queries[i] for i in rng.permutation(len(train_queries))]
    losses = []
    for x, grades, valid in map(pad, chunks(shuffled, 32)):
        loss = listnet_loss(model(x, valid), grades, valid)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    quality = evaluate(model, test_queries)
    print(f"epoch {epoch}  listnet {np.mean(losses):.3f}  ndcg@5 {quality:.3f}")
