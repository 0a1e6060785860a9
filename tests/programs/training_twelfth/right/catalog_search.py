"""Contrastive catalogue search with a large batch on little memory: embeddings first, then chunked backward passes."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 300
    length: int = 12
    dim: int = 48
    batch_size: int = 512
    chunk: int = 64
    steps: int = 60
    lr: float = 5e-3
    temperature: float = 0.07
    seed: int = 2


class TextTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.EmbeddingBag(cfg.vocab, cfg.dim, mode="mean")
        self.norm = nn.LayerNorm(cfg.dim)
        self.net = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, tokens):
        return F.normalize(self.net(self.norm(self.emb(tokens))), dim=-1)


class Catalogue:
    """Products have a topic word distribution; titles and queries are drawn from it."""

    def __init__(self, cfg, n_products):
        self.cfg = cfg
        self.words = torch.distributions.Dirichlet(torch.full((cfg.vocab,), 0.03)).sample((n_products,)) + 2e-4

    def pairs(self, idx):
        n = self.cfg.length
        return torch.multinomial(self.words[idx], n, replacement=True), torch.multinomial(self.words[idx], n, replacement=True)


class ChunkedContrastive:
    def __init__(self, cfg, query_tower, title_tower):
        self.cfg, self.towers = cfg, (query_tower, title_tower)

    def loss(self, q, t):
        logits = q @ t.T / self.cfg.temperature
        target = torch.arange(len(q))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))

    def backward(self, queries, titles):
        with torch.no_grad():
            cached = [torch.cat([tower(c) for c in tokens.split(self.cfg.chunk)])
                      for tower, tokens in zip(self.towers, (queries, titles))]
        cached = [c.requires_grad_() for c in cached]
        loss = self.loss(*cached)
        grads = torch.autograd.grad(loss, cached)
        for tower, tokens, grad in zip(self.towers, (queries, titles), grads):
            for c, g in zip(tokens.split(self.cfg.chunk), grad.split(self.cfg.chunk)):
                (tower(c) * g).sum().backward()
        return loss.item()


@torch.no_grad()
def hit_rate(query_tower, title_tower, catalogue, idx, k=5):
    queries, titles = catalogue.pairs(idx)
    top = (query_tower(queries) @ title_tower(titles).T).topk(k, dim=1).indices
    return (top == torch.arange(len(idx))[:, None]).any(1).float().mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    catalogue = Catalogue(cfg, 3000)
    known, new = torch.arange(2500), torch.arange(2500, 3000)
    query_tower, title_tower = TextTower(cfg), TextTower(cfg)
    params = [*query_tower.parameters(), *title_tower.parameters()]
    opt = torch.optim.AdamW(params, lr=cfg.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg.lr, total_steps=cfg.steps)
    engine = ChunkedContrastive(cfg, query_tower, title_tower)
    print(f"untrained hit rate@5 {hit_rate(query_tower, title_tower, catalogue, new):.3f}")
    for step in range(cfg.steps):
        idx = known[torch.randperm(len(known))[:cfg.batch_size]]
        opt.zero_grad()
        loss = engine.backward(*catalogue.pairs(idx))
        norm = nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        sched.step()
        if step % 15 == 14:
            print(f"step {step + 1:3d}  loss {loss:.3f}  grad norm {norm.item():.2f}  "
                  f"hit rate@5 new products {hit_rate(query_tower, title_tower, catalogue, new):.3f}")


if __name__ == "__main__":
    main()
