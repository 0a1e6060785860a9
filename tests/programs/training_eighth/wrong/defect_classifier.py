"""Surface-defect classification with a few very bright samples; large steps are kept in check by a norm limit."""
import torch
import torch.nn as nn
import torch.nn.functional as F

KINDS = 3
SIZE = 20


def surfaces(n, gen, glare=0.05):
    kind = torch.randint(0, KINDS, (n,), generator=gen)
    img = 0.4 * torch.randn(n, 1, SIZE, SIZE, generator=gen)
    for i, k in enumerate(kind.tolist()):
        r, c = torch.randint(3, SIZE - 6, (2,), generator=gen).tolist()
        if k == 0:
            img[i, 0, r, 2:-2] += 1.5
        elif k == 1:
            img[i, 0, r:r + 4, c:c + 4] += 1.2
        else:
            step = torch.arange(2, SIZE - 2)
            img[i, 0, step, step] += 1.5
    bright = torch.rand(n, generator=gen) < glare
    img[bright] *= 8.0
    return img, kind


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.relu(self.a(F.relu(x))))


class DefectNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(ResidualBlock(width), ResidualBlock(width))
        self.head = nn.Linear(2 * width, KINDS)

    def forward(self, x):
        h = F.relu(self.blocks(self.stem(x)))
        return self.head(torch.cat([h.mean(dim=(2, 3)), h.amax(dim=(2, 3))], dim=1))


class Meter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def add(self, value, n):
        self.sum += value * n
        self.n += n

    def mean(self):
        return self.sum / max(self.n, 1)


class Session:
    def __init__(self, model, lr=0.01, limit=0.5):
        weights = filter(lambda p: p.requires_grad, model.parameters())
        self.model = model
        self.limit = limit
        self.weights = weights
        self.optimizer = torch.optim.SGD(weights, lr=lr, momentum=0.9)

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, self.limit)
        self.optimizer.step()
        return loss.item()

    def epoch(self, data, gen, batch=24):
        x, y = data
        meter = Meter()
        self.model.train()
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            meter.add(self.step(x[idx], y[idx]), len(idx))
        return meter.mean()

    @torch.no_grad()
    def accuracy(self, data):
        self.model.eval()
        x, y = data
        return (self.model(x).argmax(1) == y).float().mean().item()


def main(epochs=8):
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    train, test = surfaces(480, gen), surfaces(192, gen)
    session = Session(DefectNet())
    for epoch in range(epochs):
        loss = session.epoch(train, gen)
        if epoch % 2 == 1:
            print(f"epoch {epoch} loss {loss:.3f}")
    acc = session.accuracy(test)
    print(f"test accuracy {acc:.3f}")
    return session, test, acc


if __name__ == "__main__":
    session, test, acc = main()
