"""Lesion segmentation: small encoder-decoder, loss = cross entropy + dice, cosine schedule."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


@dataclass
class Config:
    size: int = 24
    train: int = 144
    test: int = 96
    batch: int = 16
    epochs: int = 10
    lr: float = 3e-3
    dice_weight: float = 1.0


def make_scans(n, size):
    """Faint small discs on a noisy background."""
    grid = torch.arange(size).float()
    cx, cy = torch.rand(2, n, 1, 1) * (size - 8) + 4
    radius = 1.5 + 1.5 * torch.rand(n, 1, 1)
    masks = ((grid[None, :, None] - cy) ** 2 + (grid[None, None, :] - cx) ** 2 < radius ** 2).float()
    images = masks + 1.4 * torch.randn(n, size, size)
    return images.unsqueeze(1), masks.unsqueeze(1)


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.down = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.head = nn.Conv2d(2 * width, 1, 3, padding=1)
        nn.init.constant_(self.head.bias, -3.0)

    def forward(self, x):
        a = self.enter(x)
        b = self.up(self.down(a))
        return self.head(torch.cat([a, b], 1))


def dice_loss(logits, masks, eps=1.0):
    prediction = (logits.sigmoid() > 0.5).float()
    overlap = (prediction * masks).sum((1, 2, 3))
    total = prediction.sum((1, 2, 3)) + masks.sum((1, 2, 3))
    return 1 - ((2 * overlap + eps) / (total + eps)).mean()


def segmentation_loss(logits, masks, config):
    entropy = F.binary_cross_entropy_with_logits(logits, masks)
    dice = dice_loss(logits, masks)
    return entropy + config.dice_weight * dice, entropy, dice


@torch.no_grad()
def foreground_iou(model, images, masks):
    model.eval()
    prediction = model(images) > 0
    model.train()
    target = masks > 0.5
    return ((prediction & target).sum() / (prediction | target).sum().clamp(min=1)).item()


def main():
    torch.manual_seed(0)
    config = Config()
    images, masks = make_scans(config.train, config.size)
    test_images, test_masks = make_scans(config.test, config.size)
    model = TinyUNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs)
    for epoch in range(config.epochs):
        for index in torch.randperm(config.train).split(config.batch):
            loss, entropy, dice = segmentation_loss(model(images[index]), masks[index], config)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        iou = foreground_iou(model, test_images, test_masks)
        print(f"epoch {epoch:2d}  bce {entropy.item():.4f}  dice {dice.item():.4f}  test iou {iou:.3f}")


if __name__ == "__main__":
    main()
