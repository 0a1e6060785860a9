"""Satellite tiles: a land-cover net is reused for a new task (tree density) on a few labelled tiles.

Step 1 stands for the colleague's training run and ends with a checkpoint.  Step 2 loads it into a net with another head.
The extractor stays exactly as it was trained, normalisation included, because other teams use the same features.
"""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
SIZE, COVERS = 16, 5


def make_tiles(n, haze=0.0):
    """Three-band tiles: a base colour per land cover, stripes for two of them, and green dots with a density in [0, 1]."""
    cover = torch.randint(0, COVERS, (n,))
    base = torch.tensor([[.2, .5, .2], [.5, .4, .2], [.2, .3, .6], [.4, .4, .4], [.4, .5, .2]])[cover]
    tiles = base[:, :, None, None] + 0.1 * torch.randn(n, 3, SIZE, SIZE)
    stripes = 0.3 * (torch.arange(SIZE) // 2 % 2).float()
    tiles += ((cover == 1) | (cover == 4)).float()[:, None, None, None] * stripes
    density = torch.rand(n)
    dots = (torch.rand(n, SIZE, SIZE) < 0.4 * density[:, None, None]).float()
    tiles[:, 1] += 0.6 * dots
    tiles[:, 0] -= 0.3 * dots
    return tiles * (1 - haze) + haze, cover, density


def extractor():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.extractor = extractor()
        self.head = nn.Linear(128, COVERS)

    def forward(self, x):
        return self.head(self.extractor(x))


class DensityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.extractor = extractor()
        self.density_head = nn.Sequential(nn.Linear(128, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 1))
        self.extractor.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.extractor.eval()
        return self

    def forward(self, x):
        return self.density_head(self.extractor(x)).squeeze(1)


def train_cover(epochs=4):
    net = CoverNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    tiles, cover, _ = make_tiles(1000)
    for _ in range(epochs):
        for idx in torch.randperm(len(tiles)).split(50):
            optimizer.zero_grad()
            F.cross_entropy(net(tiles[idx]), cover[idx]).backward()
            optimizer.step()
    net.eval()
    tiles, cover, _ = make_tiles(1000)
    with torch.no_grad():
        print(f"land cover accuracy {(net(tiles).argmax(1) == cover).float().mean().item():.3f}")
    file = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getbuffer()


checkpoint = torch.load(io.BytesIO(train_cover()))
net = DensityNet()
missing, unexpected = net.load_state_dict(checkpoint["model"], strict=False)
assert all(k.startswith("density_head.") for k in missing) and all(k.startswith("head.") for k in unexpected)
before = {k: v.clone() for k, v in net.extractor.state_dict().items()}

optimizer = torch.optim.AdamW((p for p in net.parameters() if p.requires_grad), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30 * 6)
tiles, _, density = make_tiles(288, haze=0.1)
new_tiles, _, new_density = make_tiles(1000, haze=0.1)
for epoch in range(30):
    net.train()
    for idx in torch.randperm(len(tiles)).split(48):
        loss = F.mse_loss(net(tiles[idx]), density[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    if epoch % 10 == 9:
        net.eval()
        with torch.no_grad():
            print(f"epoch {epoch + 1:2d}  density error {(net(new_tiles) - new_density).abs().mean().item():.4f}")

same = all(torch.equal(v, before[k]) for k, v in net.extractor.state_dict().items())
print(f"extractor as delivered: {same}, spread of the target {(new_density - new_density.mean()).abs().mean().item():.4f}")
