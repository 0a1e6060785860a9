"""Bootstrapped representations (BYOL) of a small vision encoder, measured by nearest neighbours."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, CLASSES = 16, 8


def make_images(n, prototypes, generator):
    labels = torch.randint(0, CLASSES, (n,), generator=generator)
    images = prototypes[labels] * (0.7 + 0.6 * torch.rand(n, 1, 1, 1, generator=generator))
    shifts = torch.randint(-3, 4, (n, 2), generator=generator).tolist()
    images = torch.stack([image.roll(shift, dims=(1, 2)) for image, shift in zip(images, shifts)])
    return images + 0.5 * torch.randn(images.shape, generator=generator), labels


def augment(images, drop=0.1):
    moved = torch.cat([part.roll(torch.randint(-3, 4, (2,)).tolist(), dims=(2, 3)) for part in images.chunk(8)])
    keep = (torch.rand(len(images), 1, SIZE // 4, SIZE // 4) > drop).float()
    moved *= F.interpolate(keep, scale_factor=4, mode="nearest")
    return moved.mul_(0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)).add_(0.2 * torch.randn_like(images))


def mlp(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs, bias=False)
    )


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.projector = mlp(8 * width, 64, 32)

    def forward(self, x):
        return self.projector(self.encoder(x))


class BYOL(nn.Module):
    def __init__(self, momentum=0.97):
        super().__init__()
        self.momentum = momentum
        self.online = Backbone()
        self.predictor = mlp(32, 64, 32)
        self.target = copy.deepcopy(self.online)
        for parameter in self.target.parameters():
            parameter.requires_grad = False

    def forward(self, first, second):
        predicted = [self.predictor(self.online(view)) for view in (first, second)]
        with torch.no_grad():
            wanted = [self.target(view) for view in (second, first)]
        return sum(2 - 2 * F.cosine_similarity(p, w.detach(), dim=1).mean() for p, w in zip(predicted, wanted))

    @torch.no_grad()
    def update_target(self, progress):
        tau = 1 - (1 - self.momentum) * (math.cos(math.pi * progress) + 1) / 2
        for online, target in zip(self.online.parameters(), self.target.parameters()):
            target.data = tau * target.data + (1 - tau) * online.data


def split_decay(model, decay):
    """Weight decay for matrices and kernels only."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]


def train(model, images, epochs=10, batch=64):
    optimizer = torch.optim.AdamW(split_decay(model, 0.01), lr=2e-3)
    per_epoch = len(images) // batch
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for i, pick in enumerate(torch.randperm(len(images))[: per_epoch * batch].split(batch)):
            loss = model(augment(images[pick]), augment(images[pick]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.update_target((epoch * per_epoch + i) / (epochs * per_epoch))
            running += loss.item()
        print(f"epoch {epoch + 1:2d}  loss {running / per_epoch:.3f}")


@torch.no_grad()
def neighbour_accuracy(encoder, bank, queries, k=7):
    encoder.eval()
    stored, asked = (F.normalize(encoder(images), dim=-1) for images, _ in (bank, queries))
    nearest = (asked @ stored.T).topk(k, dim=1).indices
    votes = F.one_hot(bank[1][nearest], CLASSES).sum(1)
    return (votes.argmax(1) == queries[1]).float().mean().item()


torch.manual_seed(6)
generator = torch.Generator().manual_seed(60)
prototypes = F.interpolate(torch.randn(CLASSES, 1, 8, 8, generator=generator), scale_factor=2, mode="bilinear")
bank, queries = make_images(512, prototypes, generator), make_images(200, prototypes, generator)
model = BYOL()
print(f"neighbours before: {neighbour_accuracy(model.target.encoder, bank, queries):.3f}")
train(model, bank[0])
print(f"neighbours after:  {neighbour_accuracy(model.target.encoder, bank, queries):.3f}")
