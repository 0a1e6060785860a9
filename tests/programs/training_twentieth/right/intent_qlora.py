"""Adapt an 8-bit text classifier to a customer's intents: integer base, low-rank float adapters, a new head."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)

VOCAB, LENGTH, DIM, HIDDEN, OLD, NEW, RANK = 150, 12, 48, 96, 10, 7, 6


class Int8Linear(nn.Module):
    """A linear layer kept as int8 rows with one scale per row; there is nothing to train in it."""

    def __init__(self, linear):
        super().__init__()
        weight = linear.weight.detach()
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("rows", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("bias", linear.bias.detach().clone())

    def forward(self, x):
        return F.linear(x, self.rows.to(x.dtype) * self.scale, self.bias)


class Adapted(nn.Module):
    def __init__(self, base, inputs, outputs, alpha=12):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.empty(RANK, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, RANK))
        nn.init.normal_(self.down, std=1 / math.sqrt(inputs))
        self.scaling = alpha / RANK
        self.dropout = nn.Dropout(0.05)

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(self.dropout(x), self.down), self.up)


class IntentNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM, padding_idx=0)
        self.first = nn.Linear(DIM, HIDDEN)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, classes)

    def forward(self, tokens):
        count = (tokens != 0).sum(1, keepdim=True).clamp(min=1)
        h = self.words(tokens).sum(1) / count.sqrt()
        return self.head(F.relu(self.second(F.relu(self.first(h)))))


def utterances(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    word_probs = (1.5 * torch.randn(classes, VOCAB - 1, generator=torch.Generator().manual_seed(classes))).softmax(1)
    label = torch.randint(0, classes, (n,), generator=g)
    tokens = 1 + torch.multinomial(word_probs[label], LENGTH, replacement=True, generator=g)
    length = torch.randint(4, LENGTH + 1, (n, 1), generator=g)
    return tokens.masked_fill(torch.arange(LENGTH) >= length, 0), label


def fit(model, groups, data, epochs):
    optimizer = torch.optim.AdamW(groups)
    tokens, label = data
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(label)).split(50):
            loss = F.cross_entropy(model(tokens[idx]), label[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"  epoch {epoch}  loss {total / len(label):.4f}")


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def main():
    print("base model")
    base = IntentNet(OLD)
    fit(base, [{"params": list(base.parameters()), "lr": 3e-3}], utterances(2500, OLD, 1), epochs=4)
    old_test = utterances(600, OLD, 2)
    print(f"float {accuracy(base, old_test):.3f}")
    base.first, base.second = Int8Linear(base.first), Int8Linear(base.second)
    print(f"int8  {accuracy(base, old_test):.3f}")

    model = base.requires_grad_(False)
    model.first = Adapted(model.first, DIM, HIDDEN)
    model.second = Adapted(model.second, HIDDEN, HIDDEN)
    model.head = nn.Linear(HIDDEN, NEW)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    groups = [
        {"params": [p for n, p in trained.items() if n.endswith("up")], "lr": 1e-2, "weight_decay": 0.0},
        {"params": [p for n, p in trained.items() if not n.endswith("up")], "lr": 2e-3},
    ]
    print(f"adapting {sum(p.numel() for p in trained.values())} numbers")
    fit(model, groups, utterances(900, NEW, 3), epochs=6)
    print(f"new intents {accuracy(model, utterances(600, NEW, 4)):.3f}")


if __name__ == "__main__":
    main()
