import torch
from torch import nn
import torch.nn.functional as F


class Stages(nn.Module):
    def __init__(self, inputs, width, classes):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(inputs, width), nn.GELU())
        self.upper = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.upper(self.lower(x)))


class Finetuner:
    def __init__(self, model, lr, drop=0.3):
        self.model, self.lr, self.drop = model, lr, drop
        model.lower.requires_grad_(False)
        model.upper.requires_grad_(False)
        self.optimizer = torch.optim.AdamW(model.head.parameters(), lr=lr)
        self.waiting = [model.lower, model.upper]

    def thaw(self):
        module = self.waiting.pop()
        module.requires_grad_(True)
        self.lr *= self.drop
        self.optimizer.add_param_group({"params": list(module.parameters()), "lr": self.lr})

    def epoch(self, x, y):
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / len(x)


def songs(n, gen, twist):
    x = torch.randn(n, 12, generator=gen)
    loud = x[:, 0] * x[:, 1] + twist * x[:, 2]
    return x, (loud > 0).long() + (loud > 0.8).long()


def pretrained(gen):
    model = Stages(12, 40, 3)
    x, y = songs(512, gen, 0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    for step in range(60):
        rows = torch.randint(0, 512, (64,), generator=gen)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining loss {loss.item():.4f}")
    return model


def main():
    torch.manual_seed(141)
    gen = torch.Generator().manual_seed(141)
    model = pretrained(gen)
    model.head.reset_parameters()
    tuner = Finetuner(model, lr=1e-2)
    x, y = songs(320, gen, 0.7)
    for epoch in range(9):
        if epoch in (3, 6):
            tuner.thaw()
        loss = tuner.epoch(x, y)
        print(f"epoch {epoch} groups {len(tuner.optimizer.param_groups)} loss {loss:.4f}")
    x, y = songs(200, gen, 0.7)
    with torch.no_grad():
        print(f"test accuracy {(model(x).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
