"""Adapts a small pretrained review classifier to a new shop with low-rank adapters."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
VOCAB, DIM, LEN, CLASSES = 120, 48, 14, 4


class LowRankLinear(nn.Linear):
    """A linear layer with a low-rank update that is folded into the weight for fast inference."""

    def __init__(self, in_features, out_features, rank=4, alpha=8.0):
        super().__init__(in_features, out_features)
        self.down = nn.Parameter(torch.empty(rank, in_features))
        self.up = nn.Parameter(torch.zeros(out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank
        self.folded = False

    def delta(self):
        return (self.up @ self.down) * self.scale

    def train(self, mode=True):
        super().train(mode)
        if mode:
            if self.folded:
                self.weight.data -= self.delta().data
            self.folded = False
        else:
            self.weight.data += self.delta().data
            self.folded = True
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if not self.folded:
            out = out + F.linear(F.linear(x, self.down), self.up) * self.scale
        return out


class ReviewNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.mix = LowRankLinear(DIM, DIM)
        self.out = LowRankLinear(DIM, CLASSES)
        self.drop = nn.Dropout(0.1)

    def forward(self, tokens):
        h = self.embed(tokens).mean(1)
        return self.out(self.drop(torch.tanh(self.mix(h) * 3)))


def make_reviews(n, meaning, gen):
    tokens = torch.randint(0, VOCAB, (n, LEN), generator=gen)
    scores = meaning[tokens].mean(1) + 0.1 * torch.randn(n, CLASSES, generator=gen)
    return tokens, scores.argmax(1)


def fit(model, params, data, epochs, lr, dev=None):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    tokens, labels = data
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(tokens)).split(64):
            loss = F.cross_entropy(model(tokens[idx]), labels[idx])
            model.zero_grad()
            loss.backward()
            opt.step()
        if dev is not None and epoch % 2 == 1:
            print(f"epoch {epoch + 1}: dev loss {evaluate(model, dev)[0]:.3f}")


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    logits = model(data[0])
    return F.cross_entropy(logits, data[1]).item(), (logits.argmax(1) == data[1]).float().mean().item()


gen = torch.Generator().manual_seed(5)
meaning_a = torch.randn(VOCAB, CLASSES, generator=gen)
meaning_b = 0.5 * meaning_a + 0.8 * meaning_a.roll(1, dims=1)
source = make_reviews(3000, meaning_a, gen)
target = make_reviews(1500, meaning_b, gen)
dev, test = make_reviews(600, meaning_b, gen), make_reviews(1500, meaning_b, gen)

model = ReviewNet()
base = [p for n, p in model.named_parameters() if not n.endswith((".down", ".up"))]
fit(model, base, source, epochs=8, lr=3e-3)

for p in base:
    p.requires_grad_(False)
adapters = [p for p in model.parameters() if p.requires_grad]
print("trainable parameters:", sum(p.numel() for p in adapters))
fit(model, adapters, target, epochs=10, lr=5e-3, dev=dev)

for name, split in (("dev", dev), ("test", test)):
    loss, acc = evaluate(model, split)
    print(f"{name}: loss {loss:.3f} accuracy {acc:.3f}")
