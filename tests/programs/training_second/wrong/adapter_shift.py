import torch
from torch import nn


class AdaptedLinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.empty(base.out_features, rank))
        self.scale = alpha / rank
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.zeros_(self.down)
        nn.init.zeros_(self.up)

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)


class Tagger(nn.Module):
    def __init__(self, vocab, dim, tags):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(3 * dim, 2 * dim)
        self.project = nn.Linear(2 * dim, dim)
        self.head = nn.Linear(dim, tags)

    def forward(self, tokens):
        e = self.embed(tokens)
        left, right = e.roll(1, dims=1), e.roll(-1, dims=1)
        h = torch.tanh(self.mix(torch.cat([left, e, right], dim=-1)))
        return self.head(torch.tanh(self.project(h)))


def corpus(n, length, rule, seed):
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 20, (n, length), generator=g)
    return tokens, rule(tokens)


def train(model, tokens, tags, params, steps, lr):
    optimizer = torch.optim.Adam(params, lr=lr)
    for step in range(steps):
        rows = torch.randint(0, len(tokens), (16,))
        logits = model(tokens[rows])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"  step {step + 1} loss {loss.item():.4f}")


def main():
    torch.manual_seed(9)
    model = Tagger(20, 16, 3)
    print("general domain")
    tokens, tags = corpus(300, 10, lambda t: (t < t.roll(1, 1)).long() + (t > 9).long(), 0)
    train(model, tokens, tags, model.parameters(), 40, 8e-3)

    print("new domain")
    tokens, tags = corpus(300, 10, lambda t: (t < t.roll(-1, 1)).long() + t // 7, 1)
    model.requires_grad_(False)
    model.mix = AdaptedLinear(model.mix)
    model.project = AdaptedLinear(model.project)
    model.head = nn.Linear(16, 4)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"  trainable {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())}")
    train(model, tokens, tags, trainable, 60, 1e-2)
    return model


if __name__ == "__main__":
    main()
