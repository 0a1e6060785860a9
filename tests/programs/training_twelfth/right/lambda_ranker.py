"""LambdaRank for search results: the gradients of the scores are given by the swap gain in NDCG, not by a loss."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    n_queries: int = 600
    max_docs: int = 16
    n_features: int = 20
    hidden: int = 48
    epochs: int = 10
    queries_per_batch: int = 20
    lr: float = 3e-3
    ndcg_at: int = 5
    seed: int = 13


class ResultLists:
    """Padded lists of documents with graded relevance 0..3; mask is True for real documents."""

    def __init__(self, cfg, w, n):
        self.x = torch.randn(n, cfg.max_docs, cfg.n_features)
        length = torch.randint(5, cfg.max_docs + 1, (n, 1))
        self.mask = torch.arange(cfg.max_docs) < length
        value = torch.tanh(self.x @ w[0]) + (self.x @ w[1]).abs() + 0.3 * torch.randn(n, cfg.max_docs)
        self.rel = torch.bucketize(value, torch.tensor([0.4, 1.2, 2.0])).float() * self.mask


def ranks(scores, mask):
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True)
    return order.argsort(dim=1)


def discount(rank):
    return 1.0 / torch.log2(rank.float() + 2.0)


def ideal_dcg(rel, mask, k=None):
    gain = (2 ** rel - 1) * mask
    top = gain.sort(dim=1, descending=True).values[:, :k]
    return (top * discount(torch.arange(top.shape[1]))).sum(1).clamp(min=1e-6)


@torch.no_grad()
def ndcg(scores, rel, mask, k):
    rank = ranks(scores, mask)
    gain = (2 ** rel - 1) * discount(rank) * (rank < k) * mask
    return gain.sum(1) / ideal_dcg(rel, mask, k)


@torch.no_grad()
def lambdas(scores, rel, mask):
    """d cost / d score for every document, shape (queries, docs)."""
    rank = ranks(scores, mask)
    gain = (2 ** rel - 1) / ideal_dcg(rel, mask)[:, None]
    disc = discount(rank)
    swap = ((gain[:, :, None] - gain[:, None, :]) * (disc[:, :, None] - disc[:, None, :])).abs()
    better = (rel[:, :, None] > rel[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    pull = torch.sigmoid(scores[:, None, :] - scores[:, :, None]) * swap * better
    return pull.sum(1) - pull.sum(2)


class Ranker(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.n_features, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.hidden),
                                 nn.ReLU(), nn.Linear(cfg.hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def evaluate(model, data, cfg):
    with torch.no_grad():
        return ndcg(model(data.x), data.rel, data.mask, cfg.ndcg_at).mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    w = torch.randn(2, cfg.n_features) / cfg.n_features ** 0.5 * 1.5
    train, test = ResultLists(cfg, w, cfg.n_queries), ResultLists(cfg, w, 400)
    model = Ranker(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    print(f"untrained  NDCG@{cfg.ndcg_at} {evaluate(model, test, cfg):.3f}")
    for epoch in range(cfg.epochs):
        for idx in torch.randperm(cfg.n_queries).split(cfg.queries_per_batch):
            scores = model(train.x[idx])
            opt.zero_grad()
            scores.backward(lambdas(scores, train.rel[idx], train.mask[idx]) / len(idx))
            opt.step()
        if epoch % 2:
            print(f"epoch {epoch + 1:2d}  NDCG@{cfg.ndcg_at} train {evaluate(model, train, cfg):.3f} test {evaluate(model, test, cfg):.3f}")


if __name__ == "__main__":
    main()
