"""Sound-event tagging in stages: each stage brings new classes, the output layer is widened and training goes on."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH = 256
STAGES = ((0, 1), (2, 3), (4, 5))


def events(classes, n, gen):
    y = torch.tensor(classes)[torch.randint(0, len(classes), (n,), generator=gen)]
    t = torch.arange(LENGTH) / LENGTH
    pitch = (6.0 + 5.0 * (y % 3)).unsqueeze(1)
    decay = torch.where(y < 3, 2.0, 9.0).unsqueeze(1)
    phase = 2 * math.pi * torch.rand(n, 1, generator=gen)
    x = torch.sin(2 * math.pi * pitch * t + phase) * torch.exp(-decay * t)
    return (x + 0.15 * torch.randn(n, LENGTH, generator=gen)).unsqueeze(1), y


class Tagger(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.width = width
        self.front = nn.Sequential(
            nn.Conv1d(1, width, 17, stride=4, padding=8), nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.ReLU(),
        )
        self.out = None

    def widen(self, classes):
        fresh = nn.Linear(2 * self.width, classes)
        if self.out is not None:
            old = self.out.out_features
            with torch.no_grad():
                fresh.weight[:old].copy_(self.out.weight)
                fresh.bias[:old].copy_(self.out.bias)
        self.out = fresh

    def forward(self, x):
        h = self.front(x)
        early, late = h[..., :8].mean(-1), h[..., 8:].mean(-1)
        return self.out(torch.cat([early, late], dim=1))


class Memory:
    """A few clips per past class, replayed in later stages."""

    def __init__(self, per_class):
        self.per_class = per_class
        self.x, self.y = [], []

    def keep(self, x, y):
        for c in y.unique():
            rows = (y == c).nonzero().flatten()[: self.per_class]
            self.x.append(x[rows])
            self.y.append(y[rows])

    def join(self, x, y):
        return torch.cat([x] + self.x), torch.cat([y] + self.y)


def train_stage(model, x, y, gen, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=epochs * math.ceil(len(x) / 32))
    for _ in range(epochs):
        for idx in torch.randperm(len(x), generator=gen).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
    return loss.item()


def main():
    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    model, memory, seen, tests = Tagger(), Memory(96), [], []
    for number, classes in enumerate(STAGES):
        seen += classes
        model.widen(len(seen))
        x, y = events(classes, 256, gen)
        tests.append(events(classes, 96, gen))
        model.train()
        last = train_stage(model, *memory.join(x, y), gen, epochs=14, lr=4e-3 if number == 0 else 2e-3)
        memory.keep(x, y)
        model.eval()
        with torch.no_grad():
            scores = [(model(a).argmax(1) == b).float().mean().item() for a, b in tests]
        print(f"stage {number} loss {last:.3f} accuracy {[round(s, 3) for s in scores]}")
    mean = sum(scores) / len(scores)
    print(f"mean accuracy over stages {mean:.3f}")
    return model, mean


if __name__ == "__main__":
    model, mean = main()
