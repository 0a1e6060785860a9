import math

import torch
import torch.nn.functional as F
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, rank, alpha=8.0):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T) @ self.b.T


class Tagger(nn.Module):
    def __init__(self, vocab, dim, tags):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.inner = nn.ModuleList([nn.Linear(3 * dim, dim), nn.Linear(3 * dim, dim)])
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        h = self.embed(ids)
        for layer in self.inner:
            window = torch.cat([h.roll(1, 1), h, h.roll(-1, 1)], -1)
            h = h + F.gelu(layer(window))
        return self.out(h)


def attach_adapters(model, rank):
    model.requires_grad_(False)
    for position, layer in enumerate(model.inner):
        model.inner[position] = LoRA(layer, rank)
    return [p for p in model.parameters() if p.requires_grad]


def corpus(count, rule):
    ids = torch.randint(0, 20, (count, 10))
    return ids, rule(ids, ids.roll(1, 1)).long()


def run_epochs(model, params, data, lr, epochs, label):
    ids, tags = data
    optimizer = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    for epoch in range(epochs):
        for idx in torch.randperm(len(ids)).split(32):
            loss = F.cross_entropy(model(ids[idx]).flatten(0, 1), tags[idx].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{label} epoch {epoch} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    model = Tagger(20, 24, 2)
    source = corpus(192, lambda now, before: now > before)
    target = corpus(128, lambda now, before: now + 3 > before)
    run_epochs(model, model.parameters(), source, 5e-3, 4, "base")
    adapters = attach_adapters(model, rank=4)
    run_epochs(model, adapters, target, 5e-3, 4, "adapter")
    print("trainable", sum(p.numel() for p in adapters))
    return model


if __name__ == "__main__":
    main()
