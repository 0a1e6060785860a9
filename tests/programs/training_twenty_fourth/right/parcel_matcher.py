"""Two-tower retrieval (query text -> product text) with a large contrastive batch on little memory."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, PAD = 300, 0


def make_pairs(n, rng):
    """A product is a bag of attribute tokens; a query names some of them with synonyms (token + 150)."""
    queries, products = [], []
    for _ in range(n):
        tokens = rng.sample(range(1, 150), 10)
        products.append(tokens)
        picked = rng.sample(tokens, rng.randint(3, 6))
        queries.append([t + 150 if rng.random() < 0.7 else t for t in picked])
    return queries, products


def to_batch(rows):
    width = max(map(len, rows))
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


class Tower(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embed = nn.EmbeddingBag(VOCAB, d, mode="mean", padding_idx=PAD)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.LayerNorm(2 * d), nn.Linear(2 * d, d))

    def forward(self, tokens):
        return F.normalize(self.mlp(self.embed(tokens)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.product = Tower(), Tower()
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def contrastive(self, q, p):
        logits = self.log_scale.exp() * q @ p.T
        label = torch.arange(len(q))
        return 0.5 * (F.cross_entropy(logits, label) + F.cross_entropy(logits.T, label))


def cached_backward(model, query_tokens, product_tokens, chunk):
    """Gradients of the full-batch loss, with activations of one chunk at a time (GradCache)."""
    towers = ((model.query, query_tokens), (model.product, product_tokens))
    with torch.no_grad():
        reps = [torch.cat([tower(c) for c in tokens.split(chunk)]) for tower, tokens in towers]
    reps = [r.requires_grad_() for r in reps]
    loss = model.contrastive(*reps)
    loss.backward()
    for (tower, tokens), rep in zip(towers, reps):
        for c, g in zip(tokens.split(chunk), rep.grad.split(chunk)):
            surrogate = (tower(c) * g).sum()
            surrogate.backward()
    return loss.detach()


@torch.no_grad()
def recall_at_1(model, queries, products):
    model.eval()
    scores = model.query(to_batch(queries)) @ model.product(to_batch(products)).T
    model.train()
    return (scores.argmax(1) == torch.arange(len(queries))).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--lr", type=float, default=4e-3)
    args, _ = parser.parse_known_args()

    rng = random.Random(17)
    torch.manual_seed(17)
    queries, products = make_pairs(4000, rng)
    held_q, held_p = make_pairs(300, rng)
    model = TwoTower()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    for step in range(1, args.steps + 1):
        pick = rng.sample(range(len(queries)), args.batch)
        q, p = to_batch([queries[i] for i in pick]), to_batch([products[i] for i in pick])
        opt.zero_grad(set_to_none=True)
        loss = cached_backward(model, q, p, args.chunk)
        opt.step()
        with torch.no_grad():
            model.log_scale.clamp_(max=4.6)
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}  recall@1 {recall_at_1(model, held_q, held_p):.3f}")


if __name__ == "__main__":
    main()
