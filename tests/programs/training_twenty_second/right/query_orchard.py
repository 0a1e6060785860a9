"""Query/document retriever trained with a contrastive batch that does not fit into memory at once."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_pairs(n, vocab, gen):
    """A document is a bag of 20 words around a subject; its query repeats a few of them."""
    subject = torch.randint(0, vocab, (n, 1), generator=gen)
    docs = (subject + torch.randint(0, 25, (n, 20), generator=gen)) % vocab
    picks = torch.rand(n, 20, generator=gen).argsort(dim=1)[:, :5]
    queries = docs.gather(1, picks)
    noise = torch.rand(n, 5, generator=gen) < 0.2
    return torch.where(noise, torch.randint(0, vocab, (n, 5), generator=gen), queries), docs


class Tower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, tokens):
        return F.normalize(self.mlp(self.words(tokens)), dim=-1)


class Retriever(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.query = Tower(vocab, dim)
        self.doc = Tower(vocab, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def loss(self, q, d):
        logits = q @ d.T * self.log_scale.exp()
        target = torch.arange(len(q))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def cached_step(model, queries, docs, chunk):
    """Gao et al. 2021: embed in chunks, differentiate the loss at the embeddings, then push it through each chunk."""
    with torch.no_grad():
        q = torch.cat([model.query(part) for part in queries.split(chunk)])
        d = torch.cat([model.doc(part) for part in docs.split(chunk)])
    q.requires_grad_()
    d.requires_grad_()
    loss = model.loss(q, d)
    loss.backward()

    for tower, tokens, cache in ((model.query, queries, q.grad), (model.doc, docs, d.grad)):
        for part, grad in zip(tokens.split(chunk), cache.split(chunk)):
            surrogate = (tower(part) * grad).sum()
            surrogate.backward()
    return loss.detach()


@torch.no_grad()
def recall(model, queries, docs, k=5):
    model.eval()
    scores = model.query(queries) @ model.doc(docs).T
    found = (scores.topk(k, dim=1).indices == torch.arange(len(queries)).unsqueeze(1)).any(dim=1)
    model.train()
    return found.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=400)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--chunk", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args([])

    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(33)
    queries, docs = make_pairs(2048, args.vocab, gen)
    test_queries, test_docs = make_pairs(256, args.vocab, gen)

    model = Retriever(args.vocab)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(queries)).split(args.batch):
            opt.zero_grad()
            loss = cached_step(model, queries[rows], docs[rows], args.chunk)
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}  recall@5 {recall(model, test_queries, test_docs):.3f}  "
              f"scale {model.log_scale.exp().item():.1f}")
    return model, queries, docs


if __name__ == "__main__":
    model, queries, docs = main()
