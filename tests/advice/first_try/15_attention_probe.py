import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryAttention(nn.Module):
    def __init__(self, dim, slots=6):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(slots, dim) * 0.1)
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.last_weights = None

    def forward(self, x):
        mem = self.slots.expand(x.shape[0], -1, -1)
        seq = torch.cat([mem, x], dim=1)
        scores = self.query(x) @ self.key(seq).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = F.softmax(scores, dim=-1)
        self.last_weights = weights
        return weights @ seq


class Classifier(nn.Module):
    def __init__(self, vocab=16, dim=16, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attn = MemoryAttention(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens):
        h = self.embed(tokens)
        h = h + self.attn(h)
        h = h + self.ff(h)
        return self.head(h.mean(dim=1))

    def slot_usage(self):
        return self.attn.last_weights[..., :self.attn.slots.shape[0]].sum(-1).mean()


class KeepBest:
    def __init__(self, min_delta=1e-3):
        self.best_loss, self.best_model, self.min_delta = float("inf"), None, min_delta

    def __call__(self, loss, model):
        if loss < self.best_loss - self.min_delta:
            self.best_loss = loss
            self.best_model = copy.deepcopy(model)


def make_split(n=384, length=8):
    x = torch.randint(0, 16, (n, length))
    y = (x < 5).sum(1).clamp(1, 3) - 1
    return x, y


def run():
    torch.manual_seed(15)
    x, y = make_split()
    model, keeper = Classifier(), KeepBest()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        running = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item() * len(idx)
        print(f"epoch {epoch} loss {running / len(x):.4f} slot usage {model.slot_usage().item():.3f}")
        keeper(running / len(x), model)
    with torch.no_grad():
        acc = (keeper.best_model(x).argmax(1) == y).float().mean().item()
    print(f"best loss {keeper.best_loss:.4f} accuracy {acc:.3f}")


if __name__ == "__main__":
    run()
