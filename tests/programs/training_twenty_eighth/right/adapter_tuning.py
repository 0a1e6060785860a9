"""Low-rank adapters for a pretrained character-level language model."""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH = 32, 20


def make_text(count, factor, generator):
    """Each symbol follows from the last one by a rule with one free choice; `factor` sets the dialect."""
    text = torch.randint(0, VOCAB, (count, 1), generator=generator)
    for _ in range(LENGTH):
        choice = torch.randint(0, 2, (count, 1), generator=generator)
        text = torch.cat([text, (factor * text[:, -1:] + 1 + choice) % VOCAB], dim=1)
    return text


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


class LanguageModel(nn.Module):
    def __init__(self, width=48, heads=4):
        super().__init__()
        self.symbols = nn.Embedding(VOCAB, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.attention = Attention(width, heads)
        self.expand = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, VOCAB, bias=False)
        nn.init.normal_(self.symbols.weight, std=0.1)
        self.output.weight = self.symbols.weight

    def forward(self, text):
        x = self.symbols(text) + self.places[: text.shape[1]]
        x = x + self.attention(self.norms[0](x))
        x = x + self.shrink(F.gelu(self.expand(self.norms[1](x))))
        return self.output(self.norms[2](x))


class Adapted(nn.Module):
    """A linear layer plus a scaled product of two thin matrices."""

    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer = layer
        self.scale = alpha / rank
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.layer(x) + self.scale * F.linear(F.linear(x, self.down), self.up)

    def merged(self):
        self.layer.weight.data += self.scale * (self.up.data @ self.down.data)
        return self.layer


def adapt(model, rank=8, alpha=32.0):
    for parameter in model.parameters():
        parameter.requires_grad = False
    for owner, name in places(model):
        setattr(owner, name, Adapted(getattr(owner, name), rank, alpha))
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def places(model):
    return [(model.attention, "query"), (model.attention, "value"), (model, "expand"), (model, "shrink")]


def merge(model):
    for owner, name in places(model):
        setattr(owner, name, getattr(owner, name).merged())


def fit(model, parameters, factor, lr, steps, generator, label):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    for step in range(steps):
        text = make_text(24, factor, generator)
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 40 == 0:
            print(f"{label} step {step + 1:3d}  loss {loss.item():.4f}")


def main():
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(19)
    model = LanguageModel()
    fit(model, model.parameters(), 5, 4e-3, 120, generator, "pretraining")
    trained = adapt(model)
    print(f"trained numbers: {sum(p.numel() for p in trained)} of {sum(p.numel() for p in model.parameters())}")
    fit(model, trained, 11, 8e-3, 120, generator, "adapters")
    with torch.no_grad():
        text = make_text(64, 11, generator)
        before = model(text[:, :-1])
        merge(model)
        after = model(text[:, :-1])
    loss = F.cross_entropy(after.flatten(0, 1), text[:, 1:].flatten()).item()
    print(f"merged model: loss {loss:.4f}, largest change of a logit {(after - before).abs().max().item():.1e}")
    return model, trained


if __name__ == "__main__":
    model, trained = main()
