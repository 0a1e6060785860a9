"""One-stage detector of stained cells: dense centre scores with focal loss, offsets by smooth L1."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
SIZE = 48
STRIDE = 4
GRID = SIZE // STRIDE
N_KINDS = 2
PRIOR = 0.01
STEPS = 90

yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")


def make_slides(n):
    """Images with one or two cells (disc or ring), the class map and the sub-cell offsets."""
    img = 0.4 * torch.randn(n, 1, SIZE, SIZE)
    cls = torch.zeros(n, N_KINDS, GRID, GRID)
    off = torch.zeros(n, 2, GRID, GRID)
    for i in range(n):
        for _ in range(int(torch.randint(1, 3, ()))):
            cy, cx = (6 + torch.rand(2) * (SIZE - 12)).tolist()
            kind = int(torch.randint(0, N_KINDS, ()))
            r = torch.sqrt((yy - cy) ** 2 + (xx - cx) ** 2)
            img[i, 0] += (r < 4).float() if kind == 0 else ((r - 4).abs() < 1.2).float()
            gy, gx = int(cy // STRIDE), int(cx // STRIDE)
            cls[i, kind, gy, gx] = 1.0
            off[i, :, gy, gx] = torch.tensor([cy / STRIDE - gy, cx / STRIDE - gx])
    return img, cls, off


def init_weights(m):
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        if m.bias is not None:
            nn.init.zeros_(m.bias)


class CellDetector(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
        )
        self.score = self._make_head(2 * width, N_KINDS, bias=-math.log((1 - PRIOR) / PRIOR))
        self.offset = self._make_head(2 * width, 2, bias=0.5)
        self.apply(init_weights)

    @staticmethod
    def _make_head(width, out, bias):
        last = nn.Conv2d(width, out, 1)
        nn.init.normal_(last.weight, std=0.01)
        nn.init.constant_(last.bias, bias)
        return nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), last)

    def forward(self, x):
        f = self.stem(x)
        return self.score(f), self.offset(f)


def focal_loss(logits, target, alpha=0.25, gamma=2.0):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.sigmoid()
    pt = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - pt) ** gamma * ce).sum() / target.sum().clamp(min=1.0)


def offset_loss(pred, off, cls):
    where = (cls.sum(1, keepdim=True) > 0).expand_as(pred)
    return F.smooth_l1_loss(pred[where], off[where])


img, cls, off = make_slides(256)
val_img, val_cls, val_off = make_slides(96)
net = CellDetector()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
log = []
for step in range(STEPS):
    idx = torch.randint(0, len(img), (16,))
    score, shift = net(img[idx])
    loss_c, loss_o = focal_loss(score, cls[idx]), offset_loss(shift, off[idx], cls[idx])
    opt.zero_grad()
    (loss_c + loss_o).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    opt.step()
    log.append((loss_c.item(), loss_o.item(), norm.item()))
    if step % 15 == 0 or step == STEPS - 1:
        print(f"step {step:3d}  focal {log[-1][0]:9.3f}  offset {log[-1][1]:.4f}  grad {log[-1][2]:.2f}")

net.eval()
with torch.no_grad():
    score, shift = net(val_img)
    val_focal = focal_loss(score, val_cls).item()
    val_offset = offset_loss(shift, val_off, val_cls).item()
    top = score.flatten(1).argmax(1)
    hit = val_cls.flatten(1).gather(1, top[:, None]).mean().item()
print(f"validation focal {val_focal:.3f}  offset {val_offset:.4f}  top-1 hit rate {hit:.3f}")
