"""Basket recommender with early stopping; the best state lives in a second model of the same shape."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 41
USERS, ITEMS, RANK = 150, 120, 6
PATIENCE = 5


def interactions(rng):
    u, v = rng.standard_normal((USERS, RANK)), rng.standard_normal((ITEMS, RANK))
    score = u @ v.T / np.sqrt(RANK) + 0.7 * rng.standard_normal((USERS, ITEMS)) - 0.8
    bought = torch.tensor((score > 0).astype(np.float32))
    users, items = np.meshgrid(np.arange(USERS), np.arange(ITEMS), indexing="ij")
    pairs = torch.tensor(np.stack([users.ravel(), items.ravel()], 1))[torch.tensor(rng.permutation(USERS * ITEMS))]
    labels = bought[pairs[:, 0], pairs[:, 1]]
    cut = [4000, 6000, 9000]
    return [(pairs[a:b], labels[a:b]) for a, b in zip([0, *cut[:-1]], cut)]


class Factors(nn.Module):
    def __init__(self, rank=24):
        super().__init__()
        self.user = nn.Embedding(USERS, rank)
        self.item = nn.Embedding(ITEMS, rank)
        self.user_bias = nn.Embedding(USERS, 1)
        self.item_bias = nn.Embedding(ITEMS, 1)
        self.register_buffer("prior", torch.zeros(()))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, pairs):
        u, i = pairs.unbind(1)
        dot = (self.user(u) * self.item(i)).sum(1)
        return self.prior + dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1)


@torch.no_grad()
def evaluate(model, pairs, labels):
    logits = model(pairs)
    return F.binary_cross_entropy_with_logits(logits, labels).item(), ((logits > 0) == (labels > 0.5)).float().mean().item()


def fit(model, train, val, epochs=60):
    pairs, labels = train
    rate = labels.mean()
    model.prior.copy_(torch.log(rate / (1 - rate)))
    best = copy.deepcopy(model).requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    lowest, waited = float("inf"), 0
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(pairs)).split(100):
            loss = F.binary_cross_entropy_with_logits(model(pairs[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        val_loss, val_acc = evaluate(model, *val)
        if val_loss < lowest:
            snapshot = model.state_dict()
            best.load_state_dict(snapshot)
            lowest, waited = val_loss, 0
        else:
            waited += 1
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  train {total / len(pairs):.4f}  val {val_loss:.4f}  acc {val_acc:.3f}")
        if waited == PATIENCE:
            print(f"stopped after epoch {epoch}")
            break
    return best, lowest


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train, val, test = interactions(rng)
    model = Factors()
    best, lowest = fit(model, train, val)
    kept, _ = evaluate(best, *val)
    last_loss, last_acc = evaluate(model, *test)
    best_loss, best_acc = evaluate(best, *test)
    print(f"lowest val loss {lowest:.4f}, of the kept model {kept:.4f}")
    print(f"test loss: last {last_loss:.4f} ({last_acc:.3f}), kept {best_loss:.4f} ({best_acc:.3f})")


if __name__ == "__main__":
    main()
