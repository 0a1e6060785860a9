"""Two-tower query-to-product retrieval with cross-batch negatives from a memory bank."""
import copy
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, n_in, dim=32, hidden=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class MemoryBank(nn.Module):
    """First-in first-out store of product embeddings and their ids."""

    def __init__(self, size, dim):
        super().__init__()
        self.register_buffer("emb", torch.zeros(size, dim), persistent=False)
        self.register_buffer("ids", torch.full((size,), -1), persistent=False)
        self.ptr, self.filled = 0, 0

    @torch.no_grad()
    def push(self, emb, ids):
        size = len(self.ids)
        slots = (self.ptr + torch.arange(len(ids))) % size
        self.emb[slots] = emb
        self.ids[slots] = ids
        self.ptr = (self.ptr + len(ids)) % size
        self.filled = min(size, self.filled + len(ids))

    def contents(self):
        return self.emb[: self.filled].clone(), self.ids[: self.filled].clone()


class Catalogue:
    def __init__(self, n_products, rng, n_latent=8, n_query=20, n_product=24):
        self.rng = rng
        self.latent = rng.normal(size=(n_products, n_latent))
        features = np.tanh(self.latent @ rng.normal(0, 0.6, (n_latent, n_product)))
        self.products = torch.tensor(features + 0.05 * rng.normal(size=features.shape), dtype=torch.float32)
        self.to_query = rng.normal(0, 0.6, (n_latent, n_query))
        weight = 1.0 / np.arange(1, n_products + 1) ** 0.5
        self.popularity = rng.permutation(weight / weight.sum())

    def queries(self, n, uniform=False):
        ids = self.rng.choice(len(self.latent), n, p=None if uniform else self.popularity)
        noisy = self.latent[ids] + 0.25 * self.rng.normal(size=(n, self.latent.shape[1]))
        return torch.tensor(np.tanh(noisy @ self.to_query), dtype=torch.float32), torch.from_numpy(ids)


@torch.no_grad()
def momentum_update(slow, fast, m):
    for s, f in zip(slow.parameters(), fast.parameters()):
        s.lerp_(f, 1 - m)


def retrieval_loss(query, product, bank_emb, ids, bank_ids, log_q, temperature):
    """Softmax over in-batch products and the bank, corrected for sampling by popularity; no false negatives."""
    candidates = torch.cat([product, bank_emb])
    candidate_ids = torch.cat([ids, bank_ids])
    logits = query @ candidates.T / temperature - log_q[candidate_ids]
    same = ids[:, None] == candidate_ids[None, :]
    same[torch.arange(len(ids)), torch.arange(len(ids))] = False
    return F.cross_entropy(logits.masked_fill(same, float("-inf")), torch.arange(len(ids)))


@torch.no_grad()
def recall(query_tower, product_tower, catalogue, queries, ids, k=10):
    index = product_tower(catalogue.products)
    top = (query_tower(queries) @ index.T).topk(k, dim=1).indices
    return (top == ids[:, None]).any(1).float().mean().item()


def main():
    torch.manual_seed(17)
    started = time.time()
    catalogue = Catalogue(2000, np.random.default_rng(17))
    test_queries, test_ids = catalogue.queries(1500, uniform=True)
    log_q = torch.tensor(np.log(catalogue.popularity), dtype=torch.float32)

    query_tower, product_tower = Tower(20), Tower(24)
    bank_tower = copy.deepcopy(product_tower).requires_grad_(False)
    bank = MemoryBank(1024, 32)
    optimizer = torch.optim.AdamW([*query_tower.parameters(), *product_tower.parameters()], lr=2e-3, weight_decay=1e-4)

    for step in range(1, 501):
        queries, ids = catalogue.queries(128)
        features = catalogue.products[ids]
        bank_emb, bank_ids = bank.contents()
        loss = retrieval_loss(query_tower(queries), product_tower(features), bank_emb, ids, bank_ids, log_q, 0.07)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        momentum_update(bank_tower, product_tower, m=0.95)
        bank.push(bank_tower(features), ids)
        if step % 100 == 0:
            r = recall(query_tower, product_tower, catalogue, test_queries, test_ids)
            print(f"step {step}  loss {loss.item():.3f}  bank {bank.filled}  recall@10 {r:.3f}")
    print(f"done in {time.time() - started:.1f} s")


if __name__ == "__main__":
    main()
