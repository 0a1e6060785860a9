"""Texture classification with a small residual CNN; the exponential moving average of the weights is evaluated."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, N_CLASSES, N_TRAIN, N_TEST = 16, 5, 320, 320
EPOCHS, BATCH, DECAY = 8, 32, 0.95


def make_textures(n, generator):
    """Gratings of five orientations with random frequency, phase, brightness and contrast."""
    labels = torch.randint(0, N_CLASSES, (n,), generator=generator)
    grid = torch.arange(SIZE, dtype=torch.float32)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle = (labels * math.pi / N_CLASSES)[:, None, None]
    freq = 0.5 + 0.6 * torch.rand(n, 1, 1, generator=generator)
    phase = 2 * math.pi * torch.rand(n, 1, 1, generator=generator)
    wave = torch.sin(freq * (xx * angle.cos() + yy * angle.sin()) + phase)
    contrast = 0.6 + 0.6 * torch.rand(n, 1, 1, generator=generator)
    noise = torch.randn(n, SIZE, SIZE, generator=generator)
    images = 3.0 + contrast * wave + 0.7 * noise
    return images.unsqueeze(1), labels


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(h)))


class TextureNet(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.block = ResidualBlock(channels)
        self.down = nn.Sequential(nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.BatchNorm2d(2 * channels), nn.ReLU())
        self.fc = nn.Linear(2 * channels, N_CLASSES)

    def forward(self, x):
        h = self.down(self.block(self.stem(x)))
        return self.fc(h.mean(dim=(2, 3)))


class ModelEMA:
    """Keeps a slowly moving copy of the model that is used for evaluation."""

    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval()
        self.module.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters()):
            ema_p.mul_(self.decay).add_(p, alpha=1.0 - self.decay)


@torch.no_grad()
def accuracy(model, images, labels):
    was_training = model.training
    model.eval()
    acc = (model(images).argmax(1) == labels).float().mean().item()
    model.train(was_training)
    return acc


def main():
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(21)
    train_x, train_y = make_textures(N_TRAIN, generator)
    test_x, test_y = make_textures(N_TEST, generator)

    model = TextureNet()
    ema = ModelEMA(model, DECAY)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    for epoch in range(EPOCHS):
        model.train()
        for idx in torch.randperm(N_TRAIN).split(BATCH):
            loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
        print(f"epoch {epoch} loss {loss.item():.4f} ema test acc {accuracy(ema.module, test_x, test_y):.4f}")
    return model, ema, accuracy(model, test_x, test_y), accuracy(ema.module, test_x, test_y)


if __name__ == "__main__":
    model, ema, acc_model, acc_ema = main()
    print(f"final: raw weights {acc_model:.4f}, averaged weights {acc_ema:.4f}")
