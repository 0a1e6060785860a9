"""Next-item retrieval for a grocery app: pooled purchase history against all item embeddings."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

PAD = 0
N_ITEMS = 400
N_AISLES = 20
MAX_HISTORY = 30
EMB_DIM = 32


def simulate_sessions(n_users, rng):
    """Each user has two favourite aisles; history and target come from those aisles."""
    aisle_of = rng.permutation(np.arange(N_ITEMS) % N_AISLES)
    items_in = [np.flatnonzero(aisle_of == a) + 1 for a in range(N_AISLES)]
    histories, targets = [], []
    for _ in range(n_users):
        favourites = rng.choice(N_AISLES, size=2, replace=False)
        length = min(MAX_HISTORY, 2 + rng.geometric(0.25))
        aisles = rng.choice(favourites, size=length + 1)
        items = [int(rng.choice(items_in[a])) for a in aisles]
        histories.append(items[:-1])
        targets.append(items[-1])
    return histories, targets


class SessionDataset(Dataset):
    def __init__(self, histories, targets):
        self.histories, self.targets = histories, targets

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        history = self.histories[i]
        padded = history + [PAD] * (MAX_HISTORY - len(history))
        return torch.tensor(padded), self.targets[i]


class RetrievalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.item_emb = nn.Embedding(N_ITEMS + 1, EMB_DIM, padding_idx=PAD)
        self.user_tower = nn.Sequential(nn.LayerNorm(EMB_DIM), nn.Linear(EMB_DIM, 64), nn.ReLU(), nn.Linear(64, EMB_DIM))
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=1 / math.sqrt(module.embedding_dim))

    def forward(self, history):
        pooled = self.item_emb(history).sum(dim=1)
        return self.user_tower(pooled)

    def score(self, user):
        return user @ self.item_emb.weight[1:].T


def recall_at_k(model, loader, k=20):
    model.eval()
    hits, total = 0, 0
    with torch.no_grad():
        for history, target in loader:
            top = model.score(model(history)).topk(k, dim=1).indices + 1
            hits += (top == target[:, None]).any(dim=1).sum().item()
            total += len(target)
    return hits / total


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for history, target in loader:
        logits = model.score(model(history))
        loss = F.cross_entropy(logits, target - 1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main(epochs=5, seed=3):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    histories, targets = simulate_sessions(7000, rng)
    train_loader = DataLoader(SessionDataset(histories[:6000], targets[:6000]), batch_size=128, shuffle=True)
    test_loader = DataLoader(SessionDataset(histories[6000:], targets[6000:]), batch_size=500)

    model = RetrievalModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        loss = train_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch + 1}  loss {loss:.3f}  recall@20 {recall_at_k(model, test_loader):.3f}")
    return model, recall_at_k(model, test_loader)


if __name__ == "__main__":
    model, recall = main()
