"""Segmentation of small nodules in synthetic CT slices with a two-level U-Net.

Nodules cover about one percent of a slice, so the pixel-wise cross-entropy is combined with a
Dice term, as in most segmentation kernels on Kaggle.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

SIZE = 32
N_TRAIN, N_VALID = 260, 100
EPOCHS = 6
DICE_WEIGHT = 1.0


def make_slices(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    images = 0.35 * torch.randn(n, SIZE, SIZE)
    masks = torch.zeros(n, SIZE, SIZE)
    for i in range(n):
        cy, cx = torch.randint(5, SIZE - 5, (2,)).tolist()
        radius = 1.5 + torch.rand(1).item()
        nodule = ((yy - cy) ** 2 + (xx - cx) ** 2).float() <= radius ** 2
        masks[i][nodule] = 1.0
        images[i][nodule] += 0.45
        vy, vx = torch.randint(0, SIZE, (2,)).tolist()
        images[i, vy, :] += 0.4
        images[i, :, vx] += 0.4
    return TensorDataset(images.unsqueeze(1), masks.unsqueeze(1))


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.down = double_conv(1, width)
        self.bottom = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.bottom(F.max_pool2d(skip, 2))
        joined = torch.cat([skip, self.up(deep)], dim=1)
        return self.head(self.merge(joined))


def dice_score(logits, masks, eps=1.0):
    pred = (torch.sigmoid(logits) > 0.5).float()
    inter = (pred * masks).sum(dim=(1, 2, 3))
    total = pred.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3))
    return ((2 * inter + eps) / (total + eps)).mean()


class BCEDiceLoss(nn.Module):
    def __init__(self, dice_weight):
        super().__init__()
        self.dice_weight = dice_weight

    def forward(self, logits, masks):
        bce = F.binary_cross_entropy_with_logits(logits, masks)
        dice = 1.0 - dice_score(logits, masks)
        return bce + self.dice_weight * dice


train_loader = DataLoader(make_slices(N_TRAIN), batch_size=13, shuffle=True)
valid_loader = DataLoader(make_slices(N_VALID), batch_size=50)

model = SmallUNet()
criterion = BCEDiceLoss(DICE_WEIGHT)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for images, masks in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), masks)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(images)

    model.eval()
    valid_dice = 0.0
    with torch.no_grad():
        for images, masks in valid_loader:
            valid_dice += dice_score(model(images), masks).item() * len(images)
    print(f"epoch {epoch}: train loss {train_loss / N_TRAIN:.4f}  valid dice {valid_dice / N_VALID:.4f}")
