"""Implicit-feedback movie recommender with Bayesian Personalised Ranking (BPR).

Item vectors are kept on the unit ball between epochs, as in the metric-learning variants of
BPR, so that popular titles do not win by their norm alone.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

N_USERS, N_ITEMS, TASTES = 150, 200, 6
DIM = 12
EPOCHS = 10
BATCH = 256


def simulate_likes():
    """Each user likes about 20 movies that fit their taste vector."""
    user_taste = rng.normal(size=(N_USERS, TASTES))
    item_genre = rng.normal(size=(N_ITEMS, TASTES))
    affinity = user_taste @ item_genre.T + 0.5 * rng.normal(size=(N_USERS, N_ITEMS))
    train, held_out = [], {}
    for u in range(N_USERS):
        liked = np.argsort(-affinity[u])[:22]
        liked = rng.permutation(liked)
        held_out[u] = set(liked[:4].tolist())
        train += [(u, int(i)) for i in liked[4:]]
    return np.array(train), held_out


class BPR(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(dim=-1)

    def project_items(self):
        norm = self.item.weight.detach().norm(dim=1, keepdim=True)
        self.item.weight = nn.Parameter(self.item.weight.detach() / norm.clamp(min=1.0))


def sample_negatives(users, seen):
    negatives = rng.integers(0, N_ITEMS, size=len(users))
    for k, u in enumerate(users):
        while negatives[k] in seen[u]:
            negatives[k] = rng.integers(0, N_ITEMS)
    return negatives


def recall_at_10(model, seen, held_out):
    with torch.no_grad():
        scores = model.user.weight @ model.item.weight.t()
    hits = 0
    for u in range(N_USERS):
        row = scores[u].clone()
        row[list(seen[u])] = -float("inf")
        top = row.topk(10).indices.tolist()
        hits += len(held_out[u].intersection(top))
    return hits / (4 * N_USERS)


train, held_out = simulate_likes()
seen = {u: set() for u in range(N_USERS)}
for u, i in train:
    seen[u].add(int(i))

model = BPR(N_USERS, N_ITEMS, DIM)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-5)

for epoch in range(EPOCHS):
    order = rng.permutation(len(train))
    total = 0.0
    for start in range(0, len(order), BATCH):
        rows = train[order[start:start + BATCH]]
        negatives = sample_negatives(rows[:, 0], seen)
        users = torch.from_numpy(rows[:, 0])
        pos = model(users, torch.from_numpy(rows[:, 1]))
        neg = model(users, torch.from_numpy(negatives))
        loss = -F.logsigmoid(pos - neg).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.project_items()
    print(f"epoch {epoch:2d}  bpr loss {total / len(train):.4f}  "
          f"recall@10 {recall_at_10(model, seen, held_out):.3f}")
