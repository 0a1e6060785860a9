"""Detection head with a quality branch, fine-tuned on a backbone whose normalisation stays at its old statistics.
The backbone comes from a classification stage. Detection batches hold four images, too few for batch statistics.
The quality branch learns the IoU that the box branch reaches; that IoU is its target, not its output.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, GRID, CELL = 24, 6, 4


def scenes(n, seed):
    """One rectangle (filled or hollow) per image, a quarter of the images are empty."""
    rng = np.random.default_rng(seed)
    img = rng.normal(0, 0.2, size=(n, 1, SIDE, SIDE)).astype("float32")
    boxes, kind = np.zeros((n, 4), dtype="float32"), np.zeros(n, dtype="int64")
    for i in range(n):
        if rng.random() < 0.25:
            continue
        kind[i] = rng.integers(1, 3)
        w, h = rng.integers(6, 12, size=2)
        x0, y0 = rng.integers(0, SIDE - w), rng.integers(0, SIDE - h)
        img[i, 0, y0:y0 + h, x0:x0 + w] += 1.0
        if kind[i] == 2:
            img[i, 0, y0 + 2:y0 + h - 2, x0 + 2:x0 + w - 2] -= 1.0
        boxes[i] = [x0, y0, x0 + w, y0 + h]
    return torch.from_numpy(img), torch.from_numpy(boxes), torch.from_numpy(kind)


def conv(cin, cout, pool):
    layers = [nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


class Detector(nn.Module):
    def __init__(self, backbone, width):
        super().__init__()
        self.backbone = backbone
        self.neck = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU())
        self.obj, self.box, self.quality = (nn.Conv2d(width, k, 1) for k in (1, 4, 1))
        nn.init.constant_(self.obj.bias, -3.5)
        ticks = (torch.arange(GRID) + 0.5) * CELL
        self.register_buffer("centre", torch.stack(torch.meshgrid(ticks, ticks, indexing="xy")), persistent=False)
        for p in self.backbone[0].parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        z = self.neck(self.backbone(x))
        d = F.softplus(self.box(z)) * CELL
        xyxy = torch.cat([self.centre - d[:, :2], self.centre + d[:, 2:]], 1)
        return self.obj(z)[:, 0], xyxy.permute(0, 2, 3, 1), self.quality(z)[:, 0]


def iou(a, b):
    inter = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter + 1e-6)


def loss_fn(out, boxes, kind):
    obj, xyxy, quality = out
    has = kind > 0
    cell = ((boxes[:, :2] + boxes[:, 2:]) / 2 / CELL).long().clamp(max=GRID - 1)
    rows = torch.arange(len(boxes))[has], cell[has, 1], cell[has, 0]
    target = torch.zeros_like(obj)
    target[rows] = 1.0
    overlap = iou(xyxy[rows], boxes[has])
    q = F.binary_cross_entropy_with_logits(quality[rows], overlap.detach(), reduction="sum")
    o = F.binary_cross_entropy_with_logits(obj, target, reduction="sum")
    return (o + 2 * (1 - overlap).sum() + q) / has.sum().clamp(min=1)


torch.manual_seed(21)
width = 24
backbone = nn.Sequential(conv(1, 12, True), conv(12, width, True), conv(width, width, False))
probe = nn.Sequential(backbone, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(width, 3))
img, boxes, kind = scenes(1024, 1)
opt = torch.optim.AdamW(probe.parameters(), lr=3e-3)
for idx in torch.cat([torch.randperm(1024) for _ in range(3)]).split(64):
    opt.zero_grad()
    F.cross_entropy(probe(img[idx]), kind[idx]).backward()
    opt.step()

net = Detector(backbone, width)
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=512)
net.train()
for idx in torch.cat([torch.randperm(1024) for _ in range(2)]).split(4):
    opt.zero_grad()
    loss_fn(net(img[idx]), boxes[idx], kind[idx]).backward()
    opt.step()
    sched.step()

net.eval()
img, boxes, kind = scenes(600, 2)
with torch.no_grad():
    obj, xyxy, quality = net(img)
    score = (obj.sigmoid() * quality.sigmoid()).flatten(1)
    best = score.argmax(1)
    overlap = iou(xyxy.flatten(1, 2)[torch.arange(600), best], boxes)[kind > 0]
    claimed = quality.sigmoid().flatten(1)[torch.arange(600), best][kind > 0]
print(f"mean IoU {overlap.mean():.3f}  share above 0.5 {(overlap > 0.5).float().mean():.3f}  quality/IoU correlation {torch.corrcoef(torch.stack([claimed, overlap]))[0, 1]:.2f}")
top = score.amax(1)
print(f"score on full images {top[kind > 0].mean():.3f}, on empty images {top[kind == 0].mean():.3f}")
