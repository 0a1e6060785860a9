"""Surface defect detection: a student learns a fixed teacher's features on good parts, defects show as disagreement."""
import copy
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    size: int = 20
    channels: int = 20
    pretext_steps: int = 60
    steps: int = 120
    batch_size: int = 16
    lr: float = 4e-3
    hard_fraction: float = 0.25
    ema_decay: float = 0.97
    seed: int = 8


def good_parts(n, cfg):
    t = torch.arange(cfg.size).float()
    phase, freq, angle = torch.rand(3, n, 1, 1) * torch.tensor([6.28, 0.3, 3.14]).view(3, 1, 1, 1)
    grid = t[:, None] * torch.cos(angle) + t[None, :] * torch.sin(angle)
    return (torch.sin((0.5 + freq) * grid + phase) + 0.1 * torch.randn(n, cfg.size, cfg.size))[:, None]


def with_scratches(x):
    x, mask = x.clone(), torch.zeros_like(x, dtype=torch.bool)
    for k in range(len(x)):
        r, c, n = torch.randint(3, 15, ()), torch.randint(3, 11, ()), torch.randint(4, 8, ())
        mask[k, 0, r:r + 2, c:c + n] = True
    x[mask] = 0.6 * x[mask] + 0.5 * torch.randn(int(mask.sum()))
    return x, mask


def backbone(cfg):
    c = cfg.channels
    return nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(),
                         nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))


def pretext_teacher(cfg):
    """Learns to tell damaged from good parts, a cheap stand-in for a pretrained network."""
    net, head = backbone(cfg), nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * cfg.channels, 2))
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=3e-3)
    for _ in range(cfg.pretext_steps):
        x, label = good_parts(32, cfg), torch.arange(32) % 2
        x[label == 1] = with_scratches(x[label == 1])[0]
        opt.zero_grad()
        F.cross_entropy(head(net(x)), label).backward()
        opt.step()
    return net.requires_grad_(False)


class DefectDetector(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg, self.teacher, self.student = cfg, pretext_teacher(cfg), backbone(cfg)
        with torch.no_grad():
            feats = self.teacher.eval()(good_parts(128, cfg))
        self.register_buffer("mean", feats.mean((0, 2, 3), keepdim=True))
        self.register_buffer("std", feats.std((0, 2, 3), keepdim=True))

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x):
        target = (self.teacher(x) - self.mean) / self.std
        return (self.student(x) - target).pow(2).mean(1, keepdim=True)

    def loss(self, x):
        error = self(x)
        threshold = torch.quantile(error.detach(), 1 - self.cfg.hard_fraction)
        return error[error >= threshold].mean()


@torch.no_grad()
def pixel_auroc(model, x, mask):
    model.eval()
    good, bad = (model(x)[m].sort().values for m in (~mask, mask))
    model.train()
    return torch.searchsorted(good, bad).float().mean().item() / len(good)


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    model = DefectDetector(cfg)
    average = copy.deepcopy(model)
    x, mask = with_scratches(good_parts(100, cfg))
    opt = torch.optim.Adam(model.student.parameters(), lr=cfg.lr)
    for step in range(cfg.steps):
        loss = model.loss(good_parts(cfg.batch_size, cfg))
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, s in zip(average.student.state_dict().values(), model.student.state_dict().values()):
                a.lerp_(s, 1 - cfg.ema_decay) if a.is_floating_point() else a.copy_(s)
        if step % 40 == 39:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  AUROC {pixel_auroc(model, x, mask):.3f}  averaged {pixel_auroc(average, x, mask):.3f}")


if __name__ == "__main__":
    main()
