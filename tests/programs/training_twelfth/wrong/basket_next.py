"""Next-item recommendation from a bag of recently bought items."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
rng = np.random.default_rng(5)

N_ITEMS = 300          # ids 1..300, 0 is padding
N_TASTES = 12
MAX_HISTORY = 30
DIM = 24


def make_sessions(n):
    """Each shopper mixes two tastes; items of a taste follow a Zipf-like popularity."""
    taste_of_item = np.arange(N_ITEMS) % N_TASTES
    popularity = 1.0 / (1 + np.arange(N_ITEMS) // N_TASTES) ** 0.7
    history = np.zeros((n, MAX_HISTORY), dtype=np.int64)
    target = np.zeros(n, dtype=np.int64)
    for i in range(n):
        tastes = rng.choice(N_TASTES, size=2, replace=False)
        weight = popularity * np.isin(taste_of_item, tastes)
        length = min(MAX_HISTORY - 1, 2 + rng.geometric(0.2))
        items = 1 + rng.choice(N_ITEMS, size=length + 1, replace=False, p=weight / weight.sum())
        history[i, :length] = items[:-1]
        target[i] = items[-1]
    return torch.from_numpy(history), torch.from_numpy(target)


class BasketModel(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.item_in = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.item_out = nn.Embedding(n_items + 1, dim)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Dropout(0.1),
                                 nn.Linear(2 * dim, dim))
        self.bias = nn.Parameter(torch.zeros(n_items + 1))
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.5)

    def forward(self, history):
        length = (history != 0).sum(1, keepdim=True).clamp(min=1)
        # average of the bought items
        pooled = self.item_in(history).sum(1) / length
        query = pooled + self.mix(pooled)
        return query @ self.item_out.weight.T + self.bias


def never_padding(scores):
    scores = scores.clone()
    scores[:, 0] = float("-inf")
    return scores


@torch.no_grad()
def evaluate(model, history, target, k=10):
    model.eval()
    scores = never_padding(model(history))
    scores.scatter_(1, history, float("-inf"))
    rank = (scores > scores.gather(1, target[:, None])).sum(1)
    hit = (rank < k).float().mean().item()
    ndcg = torch.where(rank < k, 1 / torch.log2(rank + 2.0), torch.zeros(())).mean().item()
    return hit, ndcg


def main(epochs=12, batch=128):
    history, target = make_sessions(5000)
    split = 4200
    model = BasketModel(N_ITEMS, DIM)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(split).split(batch):
            loss = F.cross_entropy(never_padding(model(history[idx])), target[idx])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(idx)
        hit, ndcg = evaluate(model, history[split:], target[split:])
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  loss {total / split:.3f}  hit@10 {hit:.3f}  ndcg@10 {ndcg:.3f}")
    return model, history[split:], hit, ndcg


if __name__ == "__main__":
    model, test_history, hit, ndcg = main()
    print(f"final hit@10 {hit:.3f}  ndcg@10 {ndcg:.3f}")
