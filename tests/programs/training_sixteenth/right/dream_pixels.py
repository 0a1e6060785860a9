"""Vision assignment 2: what does the classifier like to see?

A small CNN is trained on textured patches, then the images that a chosen class responds to most
are found by gradient steps on the pixels, kept between black and white.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, CLASSES = 16, 4


def textures(n, gen):
    """0 = horizontal stripes, 1 = vertical stripes, 2 = checkerboard, 3 = bright blob."""
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    t = torch.arange(SIZE).float()
    phase = 2 * math.pi * torch.rand(2, n, 1, 1, generator=gen)
    rows = torch.sin(1.2 * t.view(1, -1, 1) + phase[0]).expand(n, SIZE, SIZE)
    cols = torch.sin(1.2 * t.view(1, 1, -1) + phase[1]).expand(n, SIZE, SIZE)
    blob = 2 * torch.exp(-((t.view(1, -1, 1) - 7.5) ** 2 + (t.view(1, 1, -1) - 7.5) ** 2) / 12) - 0.5
    clean = torch.stack([rows, cols, rows * cols, blob.expand(n, SIZE, SIZE)])[y, torch.arange(n)]
    noisy = clean + 0.3 * torch.randn(n, SIZE, SIZE, generator=gen)
    return (0.5 + 0.35 * noisy).clamp(0, 1).unsqueeze(1), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Dropout2d(0.1),
        )
        self.fc = nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.fc(self.body(x).mean(dim=(2, 3)))


def train(net, x, y):
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    net.train()
    for epoch in range(4):
        for idx in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[idx]), y[idx], label_smoothing=0.05)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


def total_variation(img):
    return (img[..., 1:, :] - img[..., :-1, :]).pow(2).mean() + (img[..., 1:] - img[..., :-1]).pow(2).mean()


def dream(net, label, steps=60):
    pixels = torch.full((1, 1, SIZE, SIZE), 0.5) + 0.05 * torch.randn(1, 1, SIZE, SIZE)
    pixels.requires_grad_(True)
    optimizer = torch.optim.Adam([pixels], lr=0.03)
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        objective = F.cross_entropy(net(pixels), torch.tensor([label])) + 0.5 * total_variation(pixels)
        objective.backward()
        optimizer.step()
        with torch.no_grad():
            pixels.clamp_(0, 1)
        history.append(objective.item())
    return pixels.detach(), history


def main():
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(8)
    x, y = textures(600, gen)
    x_test, y_test = textures(300, gen)
    net = Net()
    train(net, x, y)

    net.eval()
    net.requires_grad_(False)
    print(f"test accuracy {(net(x_test).argmax(1) == y_test).float().mean().item():.3f}")
    for label in range(CLASSES):
        image, history = dream(net, label)
        p = F.softmax(net(image), 1)[0, label].item()
        vertical = (image[..., 1:, :] - image[..., :-1, :]).abs().mean().item()
        horizontal = (image[..., 1:] - image[..., :-1]).abs().mean().item()
        print(f"class {label}: objective {history[0]:.3f} -> {history[-1]:.3f}, p = {p:.3f}, "
              f"change along rows {vertical:.3f}, along columns {horizontal:.3f}")


if __name__ == "__main__":
    main()
