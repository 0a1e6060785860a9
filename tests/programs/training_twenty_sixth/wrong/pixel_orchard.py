"""Deblur small synthetic textures with a pixel loss and a feature loss from a fixed network."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    size: int = 16
    n_train: int = 384
    n_test: int = 96
    batch: int = 32
    epochs: int = 8
    lr: float = 3e-3
    feature_weight: float = 4.0
    seed: int = 11


def textures(n, size, g):
    """Oriented stripes with random frequency, phase and contrast."""
    yy, xx = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 1, size), indexing="ij")
    angle = torch.rand(n, 1, 1, generator=g) * torch.pi
    freq = 1 + 2 * torch.rand(n, 1, 1, generator=g)
    phase = 2 * torch.pi * torch.rand(n, 1, 1, generator=g)
    wave = torch.sin(2 * torch.pi * freq * (torch.cos(angle) * xx + torch.sin(angle) * yy) + phase)
    return torch.where(wave > 0, 0.9, 0.1).unsqueeze(1)


def degrade(img, g):
    kernel = torch.tensor([1.0, 3.0, 4.0, 3.0, 1.0])
    kernel = (kernel[:, None] * kernel[None, :] / kernel.sum() ** 2).view(1, 1, 5, 5)
    blurred = F.conv2d(F.pad(img, (2, 2, 2, 2), mode="reflect"), kernel)
    return blurred + 0.08 * torch.randn(img.shape, generator=g)


class FeatureExtractor(nn.Module):
    """Fixed random convolutions; their responses stand in for the layers of a large pretrained network."""

    def __init__(self, g):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 16, 3, stride=2, padding=1)])
        for layer in self.layers:
            fan_in = layer.weight[0].numel()
            layer.weight.data = torch.randn(layer.weight.shape, generator=g) * (2.0 / fan_in) ** 0.5
            nn.init.zeros_(layer.bias)
        self.eval()

    @torch.no_grad()
    def forward(self, x):
        feats = []
        for layer in self.layers:
            x = F.relu(layer(x))
            feats.append(x)
        return feats


class RestorationLoss(nn.Module):
    def __init__(self, extractor, feature_weight):
        super().__init__()
        self.extractor = extractor
        self.feature_weight = feature_weight

    def forward(self, pred, target):
        pixel = F.l1_loss(pred, target)
        feature = sum(F.mse_loss(p, t) for p, t in zip(self.extractor(pred), self.extractor(target)))
        return pixel + self.feature_weight * feature, pixel.item(), feature.item()


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 1, 3, padding=1),
    )


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(cfg.seed)
    clean, clean_test = textures(cfg.n_train, cfg.size, g), textures(cfg.n_test, cfg.size, g)
    noisy, noisy_test = degrade(clean, g), degrade(clean_test, g)

    net = make_net()
    criterion = RestorationLoss(FeatureExtractor(g), cfg.feature_weight)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sums = torch.zeros(2)
        for idx in torch.randperm(cfg.n_train, generator=g).split(cfg.batch):
            pred = noisy[idx] + net(noisy[idx])
            loss, pixel, feature = criterion(pred, clean[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums += torch.tensor([pixel, feature]) * len(idx)
        pixel, feature = (sums / cfg.n_train).tolist()
        print(f"epoch {epoch}  pixel {pixel:.4f}  feature {feature:.4f}")

    with torch.no_grad():
        _, pixel, feature = criterion(noisy_test + net(noisy_test), clean_test)
    print(f"test     pixel {pixel:.4f}  feature {feature:.4f}")


if __name__ == "__main__":
    main()
