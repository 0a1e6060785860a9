"""Monocular depth on rendered fjord scenes: a small encoder-decoder trained with the scale-invariant log loss."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    train: int = 240
    val: int = 80
    size: int = 24
    batch: int = 24
    epochs: int = 11
    lr: float = 4e-3
    noise: float = 0.12
    gain: float = 0.25
    seed: int = 11


def render(n, size, gen):
    """Ground plane with boxes on it; brightness falls off with distance and varies with the albedo."""
    rows = torch.linspace(1, 0, size).view(1, size, 1)
    depth = (1.0 + 5.0 * rows).expand(n, size, size).clone()
    albedo = torch.rand(n, 3, 1, 1, generator=gen) * 0.3 + 0.7
    for i in range(n):
        for _ in range(3):
            h, w = torch.randint(4, 10, (2,), generator=gen).tolist()
            y, x = torch.randint(0, size - 10, (2,), generator=gen).tolist()
            depth[i, y:y + h, x:x + w] = 1.0 + 5.0 * torch.rand((), generator=gen)
    image = albedo * torch.exp(-0.3 * depth).unsqueeze(1)
    return image + 0.02 * torch.randn(image.shape, generator=gen), depth.unsqueeze(1)


class Scenes(Dataset):
    def __init__(self, images, depths, cfg, augment, seed=0):
        self.images, self.depths, self.cfg, self.augment = images, depths, cfg, augment
        self.gen = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.images)

    def jitter(self, image):
        gain = 1 + self.cfg.gain * (2 * torch.rand(3, 1, 1, generator=self.gen) - 1)
        image *= gain
        image += self.cfg.noise * torch.randn(image.shape, generator=self.gen)
        return image.clamp(0, 1)

    def __getitem__(self, index):
        image, depth = self.images[index], self.depths[index]
        if self.augment:
            image = self.jitter(image)
            if torch.rand((), generator=self.gen) < 0.5:
                image, depth = image.flip(-1), depth.flip(-1)
        return image, depth


def block(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class DepthNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = block(3, width)
        self.down = nn.Sequential(block(width, 2 * width, 2), block(2 * width, 2 * width))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), block(2 * width, width))
        self.head = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        skip = self.stem(x)
        return self.head(torch.cat([skip, self.up(self.down(skip))], 1))  # log depth


def silog(log_pred, depth, lam=0.5):
    diff = (log_pred - depth.log()).flatten(1)
    return (diff.pow(2).mean(1) - lam * diff.mean(1).pow(2)).mean()


@torch.no_grad()
def abs_rel(model, loader):
    model.eval()
    errors = [((model(x).exp() - d).abs() / d).flatten(1).mean(1) for x, d in loader]
    return torch.cat(errors).mean().item()


cfg = Config()
torch.manual_seed(cfg.seed)
gen = torch.Generator().manual_seed(cfg.seed)
train_set = Scenes(*render(cfg.train, cfg.size, gen), cfg, augment=True, seed=cfg.seed)
val_set = Scenes(*render(cfg.val, cfg.size, gen), cfg, augment=False)
train_loader = DataLoader(train_set, cfg.batch, shuffle=True)
val_loader = DataLoader(val_set, cfg.val)

model = DepthNet()
opt = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg.lr, total_steps=cfg.epochs * len(train_loader))
for epoch in range(cfg.epochs):
    model.train()
    total = 0.0
    for image, depth in train_loader:
        loss = silog(model(image), depth)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        total += loss.item()
    if epoch % 3 == 1 or epoch == cfg.epochs - 1:
        print(f"epoch {epoch:2d}  silog {total / len(train_loader):.4f}  val abs-rel {abs_rel(model, val_loader):.4f}")
