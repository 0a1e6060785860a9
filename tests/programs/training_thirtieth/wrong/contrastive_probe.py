"""Contrastive pretraining on unlabelled patches, then a linear probe on few labels with the pretrained encoder."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
SIZE, CLASSES = 16, 6


def make_patches(n, label=None):
    """Two crossed gratings; the class is the pair of orientations, the rest (phase, contrast, offset) is nuisance."""
    if label is None:
        label = torch.randint(0, CLASSES, (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    image = torch.zeros(n, SIZE, SIZE)
    for shift in (0.0, 1.3):
        angle = (label * 3.1416 / CLASSES + shift)[:, None, None]
        phase = torch.rand(n, 1, 1) * 6.283
        image += torch.sin(1.1 * (xs * torch.cos(angle) + ys * torch.sin(angle)) + phase)
    contrast = 0.4 + torch.rand(n, 1, 1)
    return (image * contrast + torch.randn(n, 1, 1))[:, None], label


def augment(x):
    n = len(x)
    gain = 0.6 + 0.8 * torch.rand(n, 1, 1, 1)
    shifts = torch.randint(-4, 5, (2,)).tolist()
    x = torch.roll(x, shifts=shifts, dims=(2, 3))
    return x * gain + 0.7 * torch.randn(n, 1, 1, 1) + 0.3 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, width=12, dim=24):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, padding=2)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, dim, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(dim)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.relu(self.norm2(self.conv2(x)))
        return x.mean(dim=(2, 3))


class ContrastiveModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.encoder = Encoder(dim=dim)
        self.projector = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


class ProbeModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.backbone = Encoder(dim=dim)
        self.classifier = nn.Linear(dim, CLASSES)

    def forward(self, x):
        return self.classifier(self.backbone(x))


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    n = len(a)
    logits = z @ z.t() / temperature
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(logits, partner)


def pretrain(path, steps=70, batch=32):
    model = ContrastiveModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(steps):
        images, _ = make_patches(batch)
        loss = nt_xent(model(augment(images)), model(augment(images)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"pretraining step {step:3d}  NT-Xent {loss.item():.3f}")
    torch.save(model.state_dict(), path)
    return model


def probe(path, steps=100):
    model = ProbeModel()
    # the projector is only needed for the pretraining, the classifier is new
    model.load_state_dict(torch.load(path), strict=False)
    model.backbone.requires_grad_(False)
    model.backbone.eval()
    images, labels = make_patches(60)
    test_images, test_labels = make_patches(300)
    optimizer = torch.optim.Adam(model.classifier.parameters(), lr=0.03)
    for step in range(steps):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"probe step {step:3d}  loss {loss.item():.3f}")
    with torch.no_grad():
        score = (model(test_images).argmax(1) == test_labels).float().mean().item()
    return model, score


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "contrastive.pt")
        pretrained = pretrain(path)
        model, score = probe(path)
    print(f"linear probe accuracy on 60 labels: {score:.3f}")
    return pretrained, model, score


if __name__ == "__main__":
    pretrained, model, score = main()
