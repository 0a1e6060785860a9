"""Self-supervised pretraining on small synthetic textures with an online and a slow network."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16
CLASSES = 4


def make_textures(n, gen):
    ys = torch.randint(0, CLASSES, (n,), generator=gen)
    grid = torch.linspace(0, 1, SIZE)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    freq = (2.0 + 2.0 * ys.float()).view(-1, 1, 1)
    phase = torch.rand(n, 1, 1, generator=gen) * 2 * math.pi
    imgs = torch.sin(2 * math.pi * freq * (xx + 0.5 * yy) + phase)
    imgs = imgs + 0.2 * torch.randn(n, SIZE, SIZE, generator=gen)
    return imgs.unsqueeze(1), ys


def augment(x, gen):
    shift = int(torch.randint(0, SIZE, (1,), generator=gen))
    x = torch.roll(x, shift, dims=-1)
    gain = 0.7 + 0.6 * torch.rand(x.size(0), 1, 1, 1, generator=gen)
    return x * gain + 0.1 * torch.randn(x.shape, generator=gen)


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.project = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, x):
        return self.project(self.conv(x))


class Bootstrap(nn.Module):
    def __init__(self, dim=32, momentum=0.97):
        super().__init__()
        self.online = Encoder(dim)
        self.predict = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.momentum = momentum

    @torch.no_grad()
    def advance_target(self):
        slow = self.target.state_dict()
        fast = self.online.state_dict()
        for key, value in fast.items():
            if value.dtype.is_floating_point:
                slow[key] = self.momentum * slow[key] + (1.0 - self.momentum) * value
            else:
                slow[key] = value

    def forward(self, a, b):
        pa, pb = self.predict(self.online(a)), self.predict(self.online(b))
        with torch.no_grad():
            ta, tb = self.target(a), self.target(b)
        loss = 2 - F.cosine_similarity(pa, tb).mean() - F.cosine_similarity(pb, ta).mean()
        return loss


def linear_probe(encoder, x, y):
    encoder.eval()
    with torch.no_grad():
        feats = encoder.conv(x)
    feats = (feats - feats.mean(0)) / (feats.std(0) + 1e-5)
    probe = nn.Linear(feats.size(1), CLASSES)
    opt = torch.optim.Adam(probe.parameters(), lr=0.05)
    for _ in range(60):
        opt.zero_grad()
        F.cross_entropy(probe(feats), y).backward()
        opt.step()
    return (probe(feats).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(3)
    x, y = make_textures(256, gen)
    model = Bootstrap()
    trainable = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(trainable, lr=2e-3, weight_decay=1e-4)
    start = copy.deepcopy(model.target)

    for epoch in range(8):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(32):
            batch = x[idx]
            loss = model(augment(batch, gen), augment(batch, gen))
            opt.zero_grad()
            loss.backward()
            opt.step()
            model.advance_target()
            total += loss.item() * len(idx)
        print(f"epoch {epoch} loss {total / len(x):.4f}")

    acc = linear_probe(model.online, x, y)
    print(f"probe accuracy {acc:.3f}")
    return model, start, acc


if __name__ == "__main__":
    model, start, acc = main()
