"""Two-tower product search. Contrastive batches are larger than what fits in memory at once, so towers run in slices."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    vocab: int = 300
    products: int = 1200
    batch: int = 240
    slice: int = 48
    dim: int = 32
    epochs: int = 14
    lr: float = 4e-3
    seed: int = 9


def catalogue(cfg):
    """Products are bags of 12 words; a query repeats 3 of them plus one random word."""
    g = torch.Generator().manual_seed(cfg.seed)
    products = torch.randint(0, cfg.vocab, (cfg.products, 12), generator=g)

    def queries(rows):
        cols = torch.rand(len(rows), 12, generator=g).argsort(1)[:, :3]
        words = products[rows].gather(1, cols)
        return torch.cat([words, torch.randint(0, cfg.vocab, (len(rows), 1), generator=g)], dim=1)

    return products, queries


class Tower(nn.Module):
    def __init__(self, words, dim):
        super().__init__()
        self.words = words
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.LayerNorm(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, words):
        h = self.words(words)
        return F.normalize(h + self.mlp(h), dim=-1)


class Matcher(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        words = nn.EmbeddingBag(cfg.vocab, cfg.dim, mode="mean")
        self.query = Tower(words, cfg.dim)
        self.product = Tower(words, cfg.dim)
        self.log_scale = nn.Parameter(torch.tensor(2.3))

    def loss(self, q, p):
        logits = self.log_scale.exp() * q @ p.t()
        target = torch.arange(len(q))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def sliced_backward(model, query_words, product_words, size):
    """Fills the gradients for one contrastive batch while only `size` examples are ever in a tower's graph."""
    jobs = [(model.query, query_words), (model.product, product_words)]
    with torch.no_grad():
        cached = [torch.cat([tower(part) for part in words.split(size)]) for tower, words in jobs]
    q, p = (c.requires_grad_() for c in cached)
    loss = model.loss(q, p)
    loss.backward()
    for (tower, words), emb in zip(jobs, (q, p)):
        for part, grad in zip(words.split(size), emb.grad.split(size)):
            tower(part).backward(gradient=grad)
    return loss.detach()


@torch.no_grad()
def mrr(model, query_words, target, products):
    model.eval()
    scores = model.query(query_words) @ model.product(products).t()
    rank = (scores > scores.gather(1, target[:, None])).sum(1) + 1
    return (1.0 / rank).mean().item()


def train(cfg):
    torch.manual_seed(cfg.seed)
    products, queries = catalogue(cfg)
    test_rows = torch.randperm(cfg.products)[:500]
    test_queries = queries(test_rows)
    model = Matcher(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    print(f"untrained  mrr {mrr(model, test_queries, test_rows, products):.3f}")
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        batches = torch.randperm(cfg.products).split(cfg.batch)
        for rows in batches:
            opt.zero_grad()
            total += sliced_backward(model, queries(rows), products[rows], cfg.slice).item()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1}  loss {total / len(batches):.3f}  "
                  f"mrr {mrr(model, test_queries, test_rows, products):.3f}")
    return model


if __name__ == "__main__":
    settings = Settings()
    model = train(settings)
    print(f"scale {model.log_scale.exp().item():.2f}")
