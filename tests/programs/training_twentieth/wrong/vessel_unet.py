"""Small U-Net that segments thin bright vessels in noisy 32x32 images, trained with BCE + Dice.

Vessels cover only a few percent of the pixels, hence the Dice term.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
SIZE, EPOCHS, BATCH = 32, 6, 12
DICE_WEIGHT = 2.0

torch.manual_seed(SEED)


def make_images(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    centre = 8 + 16 * torch.rand(n, 1, 1)
    slope = -0.4 + 0.8 * torch.rand(n, 1, 1)
    bend = 3.0 * torch.rand(n, 1, 1)
    curve = centre + slope * (xx - SIZE / 2) + bend * torch.sin(xx / 5.0)
    start = torch.randint(0, 12, (n, 1, 1))
    masks = ((yy - curve).abs() < 0.8) & (xx >= start) & (xx < start + 20)
    masks = masks.float().unsqueeze(1)
    images = 0.9 * masks + 0.8 * torch.randn(n, 1, SIZE, SIZE)
    return images, masks


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.down1 = double_conv(1, base)
        self.down2 = double_conv(base, 2 * base)
        self.bottom = double_conv(2 * base, 4 * base)
        self.up2 = nn.ConvTranspose2d(4 * base, 2 * base, 2, stride=2)
        self.dec2 = double_conv(4 * base, 2 * base)
        self.up1 = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.dec1 = double_conv(2 * base, base)
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.dec2(torch.cat([self.up2(b), d2], dim=1))
        u1 = self.dec1(torch.cat([self.up1(u2), d1], dim=1))
        return self.out(u1)


def dice_score(logits, masks, smooth=1.0):
    preds = (torch.sigmoid(logits) > 0.5).float()
    inter = (preds * masks).sum(dim=(1, 2, 3))
    size = preds.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3))
    return ((2 * inter + smooth) / (size + smooth)).mean()


class BCEDiceLoss(nn.Module):
    def __init__(self, dice_weight):
        super().__init__()
        self.bce = nn.BCEWithLogitsLoss()
        self.dice_weight = dice_weight

    def forward(self, logits, masks):
        dice_loss = 1.0 - dice_score(logits, masks)
        return self.bce(logits, masks) + self.dice_weight * dice_loss


train_x, train_y = make_images(120)
test_x, test_y = make_images(48)
model = UNet()
criterion = BCEDiceLoss(DICE_WEIGHT)
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        loss = criterion(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        test_dice = dice_score(model(test_x), test_y).item()
    print(f"epoch {epoch}: loss {total / len(train_x):.3f}  test dice {test_dice:.3f}")
