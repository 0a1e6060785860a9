"""Segment small polyps in synthetic endoscopy frames with a tiny U-shaped net (BCE + Dice)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(3)

SIZE, BATCH, EPOCHS = 24, 16, 8


def make_frames(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    centre = torch.randint(4, SIZE - 4, (n, 2))
    radius = torch.randint(1, 3, (n, 1, 1))
    dist = (yy - centre[:, :1, None]) ** 2 + (xx - centre[:, 1:, None]) ** 2
    mask = (dist <= radius ** 2).float().unsqueeze(1)
    frame = 0.9 * mask + 0.5 * torch.randn(n, 1, SIZE, SIZE)
    return frame, mask


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.Conv2d(2 * width, width, 3, padding=1)
        self.out = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.avg_pool2d(a, 2))
        b = F.relu(self.up(F.interpolate(b, scale_factor=2)))
        return self.out(torch.cat([a, b], 1))


def dice_loss(logits, target, smooth=1.0):
    pred = (torch.sigmoid(logits) > 0.5).float()
    inter = (pred * target).sum()
    total = pred.sum() + target.sum()
    return 1 - (2 * inter + smooth) / (total + smooth)


def combo_loss(logits, target, bce_weight=0.2):
    bce = F.binary_cross_entropy_with_logits(logits, target)
    dice = dice_loss(logits, target)
    return bce_weight * bce + (1 - bce_weight) * dice, bce, dice


@torch.no_grad()
def evaluate(model, frames, masks):
    model.eval()
    pred = model(frames) > 0
    inter = (pred & (masks > 0)).sum().item()
    union = (pred | (masks > 0)).sum().item()
    return inter / max(union, 1)


def train():
    train_x, train_y = make_frames(240)
    val_x, val_y = make_frames(80)
    model = TinyUNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        model.train()
        order = torch.randperm(len(train_x))
        sums = torch.zeros(2)
        for idx in order.split(BATCH):
            logits = model(train_x[idx])
            loss, bce, dice = combo_loss(logits, train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums += torch.tensor([bce.item(), dice.item()])
        iou = evaluate(model, val_x, val_y)
        mean = sums / (len(train_x) / BATCH)
        print(f"epoch {epoch:2d}  bce {mean[0]:.4f}  dice {mean[1]:.4f}  val IoU {iou:.3f}")
    return model, iou


if __name__ == "__main__":
    model, final_iou = train()
    print(f"final IoU {final_iou:.3f}")
