import torch
from torch import nn
import torch.nn.functional as F


def mlp(*sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers += [nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*layers)


def alignment(target, online):
    return F.cosine_similarity(online, target.detach(), dim=-1).mean()


class SiameseEncoder(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.backbone = mlp(channels, 48, 32)
        self.projector = mlp(32, 32, 16)
        self.predictor = mlp(16, 8, 16)

    def forward(self, view):
        z = self.projector(self.backbone(view))
        return z, self.predictor(z)


class Augment:
    def __init__(self, noise, seed):
        self.noise = noise
        self.g = torch.Generator().manual_seed(seed)

    def __call__(self, x):
        gain = 1 + 0.2 * torch.randn(len(x), 1, generator=self.g)
        return gain * x + self.noise * torch.randn(x.shape, generator=self.g)


class Pretrainer:
    def __init__(self, model, lr=0.05):
        self.model = model
        self.augment = Augment(0.3, seed=1)
        self.opt = torch.optim.SGD(
            [
                {"params": list(model.backbone.parameters()) + list(model.projector.parameters())},
                {"params": model.predictor.parameters(), "lr": lr * 2},
            ],
            lr=lr,
            momentum=0.9,
        )

    def objective(self, x):
        z1, p1 = self.model(self.augment(x))
        z2, p2 = self.model(self.augment(x))
        return -0.5 * (alignment(p1, z2) + alignment(p2, z1))

    def epoch(self, data):
        total = 0.0
        for batch in data.split(64):
            loss = self.objective(batch)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(batch)
        return total / len(data)


if __name__ == "__main__":
    torch.manual_seed(0)
    centres = torch.randn(6, 12)
    data = centres[torch.randint(0, 6, (384,))] + 0.4 * torch.randn(384, 12)
    trainer = Pretrainer(SiameseEncoder())
    for e in range(6):
        print(f"epoch {e} similarity loss {trainer.epoch(data):.4f}")
