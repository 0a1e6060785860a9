"""Recommender with cold-start handling: id embeddings that are dropped at random, and a content tower.

The item vector is content(item) plus what the id knows beyond it; new items have content(item) alone. Three stages:
  A. the id model is trained alone;
  B. the content tower learns to reproduce the id vectors (the id table is fixed from here on);
  C. the scale of both parts and the user table are tuned together, while the id's part is missing at random rows.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 17
N_USERS, N_ITEMS, N_NEW, DIM, TRUE_DIM, N_CONTENT = 250, 160, 40, 16, 5, 20
N_CLICKS, BATCH = 8000, 250
ID_DROP = 0.5

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

taste = rng.standard_normal((N_USERS, TRUE_DIM))
traits = rng.standard_normal((N_ITEMS, TRUE_DIM))
content = torch.tensor(
    np.tanh(traits @ rng.standard_normal((TRUE_DIM, N_CONTENT))) + 0.2 * rng.standard_normal((N_ITEMS, N_CONTENT)),
    dtype=torch.float32,
)
KNOWN = N_ITEMS - N_NEW


def clicks(n, low, high):
    users = rng.integers(0, N_USERS, n)
    logits = 1.5 * taste[users] @ traits[low:high].T
    items = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1) + low
    return torch.from_numpy(users), torch.from_numpy(items)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(N_USERS, DIM)
        self.ids = nn.Embedding(KNOWN, DIM)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.ids.weight, std=0.1)
        self.content = nn.Sequential(nn.Linear(N_CONTENT, 48), nn.ReLU(), nn.Linear(48, DIM))
        self.content_gain = nn.Parameter(torch.ones(DIM))
        self.id_gain = nn.Parameter(torch.ones(DIM))

    def item_vectors(self, drop_rate):
        from_content = self.content(content) * self.content_gain
        known = self.ids.weight
        residual = (known - self.content(content[:KNOWN]).detach()) * self.id_gain
        keep = (torch.rand(KNOWN, 1) >= drop_rate).float() if self.training else torch.ones(KNOWN, 1)
        residual = torch.cat([residual * keep, torch.zeros(N_ITEMS - KNOWN, DIM)])
        return from_content + residual


def batches(users, items, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(users)).split(BATCH):
            yield users[rows], items[rows]


@torch.no_grad()
def recall(model, users, items, low, high, k=5):
    model.eval()
    scores = model.users(users) @ model.item_vectors(0.0)[low:high].T
    hit = (scores.topk(k, dim=1).indices == (items - low)[:, None]).any(dim=1).float().mean().item()
    model.train()
    return hit


model = Recommender()
users, items = clicks(N_CLICKS, 0, KNOWN)
test_known, test_new = clicks(2000, 0, KNOWN), clicks(2000, KNOWN, N_ITEMS)

opt_a = torch.optim.Adam([model.users.weight, model.ids.weight], lr=1e-2)
for u, i in batches(users, items, 8):
    loss = F.cross_entropy(model.users(u) @ model.ids.weight.T, i)
    opt_a.zero_grad()
    loss.backward()
    opt_a.step()
print(f"stage A  click loss {loss.item():.3f}")

model.ids.requires_grad_(False)
opt_b = torch.optim.Adam(model.content.parameters(), lr=3e-3, weight_decay=1e-4)
for _ in range(400):
    loss = F.mse_loss(model.content(content[:KNOWN]), model.ids.weight)
    opt_b.zero_grad()
    loss.backward()
    opt_b.step()
print(f"stage B  distance to the id vectors {loss.item():.4f}  "
      f"recall known {recall(model, *test_known, 0, KNOWN):.3f}  new {recall(model, *test_new, KNOWN, N_ITEMS):.3f}")

model.content.requires_grad_(False)
opt_c = torch.optim.Adam([model.users.weight, model.content_gain, model.id_gain], lr=2e-3)
for u, i in batches(users, items, 4):
    loss = F.cross_entropy(model.users(u) @ model.item_vectors(ID_DROP)[:KNOWN].T, i)
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
print(f"stage C  click loss {loss.item():.3f}  "
      f"recall known {recall(model, *test_known, 0, KNOWN):.3f}  new {recall(model, *test_new, KNOWN, N_ITEMS):.3f}")
