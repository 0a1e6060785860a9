"""Fine-tune a pretrained image encoder on a small set with a freezing schedule and an averaged copy.

Batch norm of the encoder keeps the pretraining statistics throughout; the blocks thaw from the top; the stem
never does. The averaged weights are swapped in for validation and out again.
"""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


def textures(n, angles, gen):
    """Gratings of some orientations on 16x16 pixels, with noise and random phase."""
    y = torch.randint(len(angles), (n,), generator=gen)
    theta = torch.tensor(angles)[y] + 0.08 * torch.randn(n, generator=gen)
    r = torch.arange(16.0)
    wave = theta.cos()[:, None, None] * r[:, None] + theta.sin()[:, None, None] * r[None]
    x = torch.sin(1.1 * wave + 6.28 * torch.rand(n, 1, 1, generator=gen)) + 0.7 * torch.randn(n, 16, 16, generator=gen)
    return x.unsqueeze(1), y


def stage(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Classifier(nn.Module):
    def __init__(self, classes, encoder=None):
        super().__init__()
        self.keep_statistics = encoder is not None
        self.encoder = encoder or nn.Sequential(stage(1, 12), stage(12, 16), stage(16, 24))
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.encoder(x).mean((2, 3)))

    def train(self, mode=True):
        super().train(mode)
        if self.keep_statistics:
            self.encoder.eval()
        return self


class Average:
    def __init__(self, model, decay):
        self.params = list(model.parameters())
        self.values = [p.detach().clone() for p in self.params]
        self.decay = decay

    @torch.no_grad()
    def update(self):
        for v, p in zip(self.values, self.params):
            v.lerp_(p, 1 - self.decay)

    @contextlib.contextmanager
    def swapped_in(self):
        own = [p.data for p in self.params]
        for p, v in zip(self.params, self.values):
            p.data = v
        try:
            yield
        finally:
            for p, data in zip(self.params, own):
                p.data = data


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def fit(model, groups, data, epochs, thaw=None, average=None, batch=32):
    optimizer = torch.optim.AdamW(groups, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - 0.9 * epoch / epochs)
    for epoch in range(epochs):
        for module in (thaw or {}).get(epoch, []):
            module.requires_grad_(True)
        model.train()
        for idx in torch.randperm(len(data[0])).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(data[0][idx]), data[1][idx]).backward()
            optimizer.step()
            if average:
                average.update()
        schedule.step()


torch.manual_seed(0)
gen = torch.Generator().manual_seed(8)
source = Classifier(4)
big = textures(1536, [0.0, 0.79, 1.57, 2.36], gen)
fit(source, [{"params": source.parameters(), "lr": 3e-3}], big, epochs=4)
print(f"source accuracy {evaluate(source, *textures(400, [0.0, 0.79, 1.57, 2.36], gen)):.3f}")

target_angles = [0.3, 0.9, 1.5, 2.1, 2.7]
small, valid = textures(320, target_angles, gen), textures(500, target_angles, gen)
model = Classifier(5, encoder=source.encoder)
stem, middle, top = model.encoder.requires_grad_(False)
average = Average(model, decay=0.97)
fit(model, [
    {"params": model.head.parameters(), "lr": 1e-2},
    {"params": top.parameters(), "lr": 4e-3},
    {"params": middle.parameters(), "lr": 2e-3},
], small, epochs=18, thaw={3: [top], 6: [middle]}, average=average)
plain = evaluate(model, *valid)
with average.swapped_in():
    averaged = evaluate(model, *valid)
print(f"target accuracy: last weights {plain:.3f}, averaged weights {averaged:.3f}")
print("after the swap the last weights are back:", evaluate(model, *valid) == plain)
