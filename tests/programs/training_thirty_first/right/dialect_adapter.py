"""Adapt a vowel classifier to a second dialect with low-rank updates of its frozen layers."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(14)

VOWELS = 6
FORMANTS = 16
WIDTH = 48
RANK = 3
BATCH = 64
BASE_STEPS = 150
ADAPT_STEPS = 200


class LowRankLinear(nn.Linear):
    """A linear layer with fixed weight and bias and a trained update of low rank, folded in for evaluation."""

    def __init__(self, inputs, outputs, rank=RANK, alpha=6.0):
        super().__init__(inputs, outputs)
        self.weight.requires_grad = False
        self.bias.requires_grad = False
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.folded = False

    def update(self):
        return self.scaling * (self.up.data @ self.down.data)

    def train(self, mode=True):
        super().train(mode)
        if mode and self.folded:
            self.weight.data.sub_(self.update())
            self.folded = False
        elif not mode and not self.folded:
            self.weight.data.add_(self.update())
            self.folded = True
        return self

    def forward(self, x):
        result = F.linear(x, self.weight, self.bias)
        if not self.folded:
            result = result + self.scaling * F.linear(F.linear(x, self.down), self.up)
        return result


class VowelNet(nn.Module):
    def __init__(self, layer=nn.Linear):
        super().__init__()
        self.first = layer(FORMANTS, WIDTH)
        self.second = layer(WIDTH, WIDTH)
        self.last = layer(WIDTH, VOWELS)

    def forward(self, formants):
        hidden = F.relu(self.first(formants))
        hidden = F.relu(self.second(hidden))
        return self.last(hidden)


class Dialect:
    def __init__(self, centers):
        self.centers = centers

    def sample(self, count):
        labels = torch.randint(0, VOWELS, (count,))
        return self.centers[labels] + 0.8 * torch.randn(count, FORMANTS), labels


def fit(model, optimizer, dialect, steps):
    model.train()
    for step in range(steps):
        formants, labels = dialect.sample(BATCH)
        loss = F.cross_entropy(model(formants), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"  step {step + 1:4d}  loss {loss.item():.4f}  accuracy {accuracy(model, dialect):.3f}")
            model.train()


@torch.no_grad()
def accuracy(model, dialect, count=400):
    model.eval()
    formants, labels = dialect.sample(count)
    return (model(formants).argmax(1) == labels).float().mean().item()


if __name__ == "__main__":
    north = Dialect(torch.randn(VOWELS, FORMANTS))
    south = Dialect(north.centers.roll(1, dims=0) + 0.2 * torch.randn(VOWELS, FORMANTS))
    base = VowelNet()
    print("north")
    fit(base, torch.optim.Adam(base.parameters(), lr=3e-3), north, BASE_STEPS)
    print(f"base on south: {accuracy(base, south):.3f}")

    adapted = VowelNet(LowRankLinear)
    missing, unexpected = adapted.load_state_dict(base.state_dict(), strict=False)
    assert not unexpected and all(key.endswith(("down", "up")) for key in missing)
    trained = [p for p in adapted.parameters() if p.requires_grad]
    print(f"south, {sum(p.numel() for p in trained)} trained weights")
    fit(adapted, torch.optim.Adam(trained, lr=1e-2), south, ADAPT_STEPS)
    print(f"adapted on south: {accuracy(adapted, south):.3f}")
    adapted.train()
    unchanged = torch.allclose(adapted.first.weight, base.first.weight, atol=1e-5)
    print(f"base weights as before: {unchanged}")
