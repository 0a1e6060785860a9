"""Small U-Net style segmentation of thin bright vessels in noisy tiles, trained with BCE + Dice."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, N_TRAIN, N_VAL, EPOCHS, BATCH = 32, 96, 32, 6, 16
DICE_WEIGHT = 2.0


def make_tiles(n, rng):
    images = rng.normal(0.0, 0.6, size=(n, 1, SIZE, SIZE)).astype(np.float32)
    masks = np.zeros((n, 1, SIZE, SIZE), dtype=np.float32)
    cols = np.arange(SIZE)
    for i in range(n):
        for _ in range(rng.integers(1, 3)):
            rows = rng.uniform(4, SIZE - 4) + rng.uniform(1, 4) * np.sin(cols * rng.uniform(0.1, 0.3))
            rows = np.clip(rows.round().astype(int), 0, SIZE - 1)
            masks[i, 0, rows, cols] = 1.0
    images += 0.9 * masks
    return torch.from_numpy(images), torch.from_numpy(masks)


class ConvBlock(nn.Sequential):
    def __init__(self, c_in, c_out):
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        )


class TinyUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enc1 = ConvBlock(1, width)
        self.enc2 = ConvBlock(width, 2 * width)
        self.mid = ConvBlock(2 * width, 2 * width)
        self.dec = ConvBlock(3 * width, width)
        self.head = nn.Conv2d(width, 1, 1)
        nn.init.constant_(self.head.bias, -2.5)  # foreground is rare

    def forward(self, x):
        skip = self.enc1(x)
        h = self.mid(self.enc2(F.max_pool2d(skip, 2)))
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.head(self.dec(torch.cat([skip, h], dim=1)))


def dice_score(pred, target, eps=1.0):
    dims = (1, 2, 3)
    inter = (pred * target).sum(dims)
    return (2 * inter + eps) / (pred.sum(dims) + target.sum(dims) + eps)


class BCEDiceLoss(nn.Module):
    def __init__(self, dice_weight):
        super().__init__()
        self.dice_weight = dice_weight

    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        pred = (torch.sigmoid(logits) > 0.5).float()
        dice = 1.0 - dice_score(pred, target).mean()
        return bce + self.dice_weight * dice


@torch.no_grad()
def evaluate(model, images, masks):
    model.eval()
    pred = (torch.sigmoid(model(images)) > 0.5).float()
    return dice_score(pred, masks).mean().item()


def main():
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    train_x, train_y = make_tiles(N_TRAIN, rng)
    val_x, val_y = make_tiles(N_VAL, rng)

    model = TinyUNet()
    criterion = BCEDiceLoss(DICE_WEIGHT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for idx in torch.randperm(N_TRAIN).split(BATCH):
            x, y = train_x[idx], train_y[idx]
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        scheduler.step()
        score = evaluate(model, val_x, val_y)
        print(f"epoch {epoch} loss {total / N_TRAIN:.4f} val dice {score:.4f}")
    return score


if __name__ == "__main__":
    final_dice = main()
