"""x2 super-resolution of rendered line drawings with a low-resolution consistency loss and a perceptual loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
HR, BATCH, STEPS = 32, 8, 140
CONSISTENCY_WEIGHT, PERCEPTUAL_WEIGHT = 1.0, 1.0


def drawings(n):
    gy, gx = torch.meshgrid(torch.arange(HR).float(), torch.arange(HR).float(), indexing="ij")
    out = torch.zeros(n, HR, HR)
    kind = torch.randint(0, 3, (n,))
    for i in range(n):
        for _ in range(4):
            theta = torch.rand(()) * (math.pi if kind[i] == 0 else 0.5 * math.pi)
            dist = (gx - HR * torch.rand(())) * torch.cos(theta) + (gy - HR * torch.rand(())) * torch.sin(theta)
            if kind[i] == 2:
                dist = torch.hypot(gx - HR * torch.rand(()), gy - HR * torch.rand(())) - 4 - 6 * torch.rand(())
            out[i] = torch.maximum(out[i], (dist.abs() < 1.0).float() * (0.5 + 0.5 * torch.rand(())))
    return out[:, None], kind


class SubPixelNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.tail = nn.Sequential(nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, lr):
        h = self.head(lr)
        for conv in self.body:
            h = h + conv(F.relu(h))
        base = F.interpolate(lr, scale_factor=2, mode="bilinear", align_corners=False)
        return base + self.tail(h)


class FeatureNet(nn.Module):
    """Small drawing classifier whose first two stages serve as the perceptual space."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(1, 12, 3, padding=1), nn.Conv2d(12, 24, 3, stride=2, padding=1)])
        self.fc = nn.Linear(24, 3)

    def features(self, x):
        maps = []
        for stage in self.stages:
            x = F.relu(stage(x))
            maps.append(x)
        return maps

    def forward(self, x):
        return self.fc(self.features(x)[-1].mean((2, 3)))


class PerceptualLoss(nn.Module):
    def __init__(self, extractor):
        super().__init__()
        self.extractor = extractor.eval().requires_grad_(False)

    @torch.no_grad()
    def embed(self, img):
        return [F.normalize(m, dim=1) for m in self.extractor.features(img)]

    def forward(self, sr, hr):
        return sum(F.mse_loss(a, b) * a.shape[1] for a, b in zip(self.embed(sr), self.embed(hr)))


images, kinds = drawings(240)
test_hr, _ = drawings(40)
extractor = FeatureNet()
ext_opt = torch.optim.Adam(extractor.parameters(), lr=5e-3)
for step in range(80):
    idx = torch.randint(0, len(images), (16,))
    ext_opt.zero_grad()
    F.cross_entropy(extractor(images[idx]), kinds[idx]).backward()
    ext_opt.step()

perceptual = PerceptualLoss(extractor)
net = SubPixelNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(STEPS):
    hr = images[torch.randint(0, len(images), (BATCH,))]
    lr = F.avg_pool2d(hr, 2)
    sr = net(lr)
    consistency, percep = F.l1_loss(F.avg_pool2d(sr, 2), lr), perceptual(sr, hr)
    loss = CONSISTENCY_WEIGHT * consistency + PERCEPTUAL_WEIGHT * percep
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 35 == 34:
        print(f"step {step + 1:3d}  consistency {consistency.item():.4f}  perceptual {percep.item():.4f}")

net.eval()
with torch.no_grad():
    test_sr = net(F.avg_pool2d(test_hr, 2))
    psnr = -10 * torch.log10(F.mse_loss(test_sr.clamp(0, 1), test_hr)).item()
    distance = perceptual(test_sr, test_hr).item()
print(f"test psnr {psnr:.2f} dB  perceptual distance {distance:.4f}")
