"""Recipe search: a query tower and a recipe tower, in-batch softmax with batches larger than memory allows."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, PAD = 600, 0


def synth_pairs(n, rng, topics=60):
    """Bags of words: a query of 4 words and a recipe of 12 words about the same topic."""
    words = rng.permutation(np.arange(1, VOCAB))[: topics * 9].reshape(topics, 9)
    topic = rng.integers(0, topics, n)

    def bag(length, noise):
        own = words[topic[:, None], rng.integers(0, 9, (n, length))]
        other = rng.integers(1, VOCAB, (n, length))
        bag = np.where(rng.random((n, length)) < noise, other, own)
        bag[np.arange(length)[None, :] >= rng.integers(2, length + 1, n)[:, None]] = PAD
        return torch.as_tensor(bag)

    return bag(4, 0.15), bag(12, 0.4), torch.as_tensor(topic)


class Tower(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, dim, mode="mean", padding_idx=PAD)
        self.mix = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, bags):
        h = self.words(bags)
        return F.normalize(h + self.mix(h), dim=1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.recipe = Tower(), Tower()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, q, r):
        logits = self.log_scale.exp() * q @ r.T
        labels = torch.arange(len(q))
        return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels))


@torch.no_grad()
def embed(tower, bags, chunk):
    return torch.cat([tower(part) for part in bags.split(chunk)])


def big_batch_backward(model, queries, recipes, chunk=64):
    """Gradients of the loss of the whole batch, with activations of only one chunk at a time."""
    q = embed(model.query, queries, chunk).requires_grad_()
    r = embed(model.recipe, recipes, chunk).requires_grad_()
    loss = model.loss(q, r)
    loss.backward()
    for tower, bags, cached in ((model.query, queries, q.grad), (model.recipe, recipes, r.grad)):
        for part, grad in zip(bags.split(chunk), cached.split(chunk)):
            (tower(part) * grad).sum().backward()
    return loss.detach()


@torch.no_grad()
def precision(model, queries, recipes, topic, k=5):
    """Share of the k best recipes that are about the topic of the query."""
    score = embed(model.query, queries, 256) @ embed(model.recipe, recipes, 256).T
    best = score.topk(k, dim=1).indices
    return (topic[best] == topic[:, None]).float().mean().item()


def main():
    torch.manual_seed(17)
    queries, recipes, topic = synth_pairs(3600, np.random.default_rng(17))
    train, test = slice(0, 3072), slice(3072, None)

    model = Matcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(12):
        total = torch.zeros(())
        for idx in torch.randperm(3072).split(512):
            optimizer.zero_grad()
            total += big_batch_backward(model, queries[train][idx], recipes[train][idx])
            optimizer.step()
            with torch.no_grad():
                model.log_scale.clamp_(max=4.6)
        if epoch % 3 == 2:
            p = precision(model, queries[test], recipes[test], topic[test])
            print(f"epoch {epoch + 1}  loss {total / 6:.3f}  precision@5 {p:.3f}")


if __name__ == "__main__":
    main()
