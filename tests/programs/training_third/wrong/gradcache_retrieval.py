import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, vocab, dim=32, dropout=0.3):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, dim))

    def forward(self, tokens):
        return F.normalize(self.mlp(self.words(tokens)), dim=-1)


class BiEncoder(nn.Module):
    def __init__(self, vocab=60):
        super().__init__()
        self.query = Tower(vocab)
        self.doc = Tower(vocab)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def contrast(self, q, d):
        logits = self.log_scale.exp() * q @ d.T
        return F.cross_entropy(logits, torch.arange(len(q)))


class CachedStep:
    def __init__(self, model, optimizer, chunk_size=16):
        self.model, self.optimizer, self.chunk_size = model, optimizer, chunk_size

    @torch.no_grad()
    def embed(self, tower, tokens):
        return torch.cat([tower(part) for part in tokens.split(self.chunk_size)])

    def cache_gradients(self, q, d):
        q, d = q.requires_grad_(), d.requires_grad_()
        loss = self.model.contrast(q, d)
        loss.backward()
        return loss.item(), q.grad, d.grad

    def replay(self, tower, tokens, cached):
        parts = zip(tokens.split(self.chunk_size), cached.split(self.chunk_size))
        for part, grad in parts:
            surrogate = (tower(part) * grad).sum()
            surrogate.backward()

    def __call__(self, queries, docs):
        self.optimizer.zero_grad()
        q = self.embed(self.model.query, queries)
        d = self.embed(self.model.doc, docs)
        loss, q_grad, d_grad = self.cache_gradients(q, d)
        self.replay(self.model.query, queries, q_grad)
        self.replay(self.model.doc, docs, d_grad)
        self.optimizer.step()
        return loss


def make_pairs(n=64, length=6, vocab=60):
    docs = torch.randint(0, vocab, (n, length))
    queries = docs[:, torch.randperm(length)[:3]]
    return queries, docs


def main(steps=25):
    torch.manual_seed(0)
    model = BiEncoder().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    step_fn = CachedStep(model, optimizer)
    for step in range(steps):
        loss = step_fn(*make_pairs())
        if step % 8 == 0:
            print(f"step {step} loss {loss:.4f}")
    return model


if __name__ == "__main__":
    model = main()
