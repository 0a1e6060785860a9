"""Binary segmentation of bright blobs in noisy scans, cross entropy plus an overlap term."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ScanSet:
    def __init__(self, n, size=32, seed=0):
        gen = torch.Generator().manual_seed(seed)
        axis = torch.arange(size, dtype=torch.float32)
        yy, xx = torch.meshgrid(axis, axis, indexing="ij")
        images, masks = [], []
        for _ in range(n):
            cy, cx = (6 + (size - 12) * torch.rand(2, generator=gen)).tolist()
            ry, rx = (2 + 2.5 * torch.rand(2, generator=gen)).tolist()
            mask = (((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1).float()
            tilt = torch.randn(2, generator=gen) * 0.01
            image = 0.7 * mask + tilt[0] * yy + tilt[1] * xx
            images.append(image + 0.5 * torch.randn(size, size, generator=gen))
            masks.append(mask)
        self.images = torch.stack(images).unsqueeze(1)
        self.masks = torch.stack(masks).unsqueeze(1)
        self.gen = gen

    def batches(self, size):
        order = torch.randperm(len(self.images), generator=self.gen)
        for idx in order.split(size):
            yield self.images[idx], self.masks[idx]


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.SiLU(),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.SiLU(),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = block(1, width)
        self.down2 = block(width, 2 * width)
        self.bottom = block(2 * width, 2 * width)
        self.up2 = block(4 * width, width)
        self.up1 = block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.up2(torch.cat([F.interpolate(b, scale_factor=2.0), d2], dim=1))
        u1 = self.up1(torch.cat([F.interpolate(u2, scale_factor=2.0), d1], dim=1))
        return self.head(u1)


class OverlapLoss(nn.Module):
    def __init__(self, threshold=0.5, smooth=1.0):
        super().__init__()
        self.threshold = threshold
        self.smooth = smooth

    def forward(self, logits, target):
        pred = (torch.sigmoid(logits) > self.threshold).float()
        inter = (pred * target).sum(dim=(1, 2, 3))
        total = pred.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
        dice = (2 * inter + self.smooth) / (total + self.smooth)
        return (1 - dice).mean()


class SegmentationLoss(nn.Module):
    def __init__(self, overlap_weight=1.0):
        super().__init__()
        self.overlap = OverlapLoss()
        self.weight = overlap_weight

    def forward(self, logits, target):
        pixel = F.binary_cross_entropy_with_logits(logits, target)
        region = self.overlap(logits, target)
        return pixel + self.weight * region, pixel.item(), region.item()


def evaluate(net, data):
    net.eval()
    with torch.no_grad():
        pred = torch.sigmoid(net(data.images)) > 0.5
    truth = data.masks > 0.5
    inter = (pred & truth).sum().item()
    union = (pred | truth).sum().item()
    return inter / max(union, 1)


def train(epochs=6):
    torch.manual_seed(0)
    data, held = ScanSet(96, seed=1), ScanSet(32, seed=2)
    net, criterion = SmallUNet(), SegmentationLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        net.train()
        sums = [0.0, 0.0]
        for images, masks in data.batches(16):
            loss, pixel, region = criterion(net(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums[0] += pixel
            sums[1] += region
        print(f"epoch {epoch}: pixel {sums[0] / 6:.3f} region {sums[1] / 6:.3f}")
    score = evaluate(net, held)
    print(f"held-out IoU {score:.3f}")
    return net, criterion, held, score


if __name__ == "__main__":
    net, criterion, held, score = train()
