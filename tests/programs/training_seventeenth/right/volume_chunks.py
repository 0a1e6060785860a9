"""Lesion segmentation in large volumes: slabs of unequal size, one optimizer step per volume, EMA for evaluation."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
SIDE = 16
N_VOLUMES = 24
EPOCHS = 6
SLAB = 5
DECAY = 0.95

yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")


def make_volume():
    """A stack of slices with one ball-shaped lesion; slices outside the scanned body are marked invalid."""
    depth = int(torch.randint(9, 19, ()))
    center = 4 + torch.rand(3) * torch.tensor([depth - 8.0, SIDE - 8.0, SIDE - 8.0])
    zz = torch.arange(depth).view(-1, 1, 1)
    dist = (zz - center[0]) ** 2 + (yy - center[1]) ** 2 + (xx - center[2]) ** 2
    label = (dist < 10).float()
    image = 1.2 * label + 0.8 * torch.randn(depth, SIDE, SIDE)
    valid = torch.ones(depth, 1, SIDE, SIDE)
    valid[: int(torch.randint(0, 4, ()))] = 0
    return image.unsqueeze(1), label.unsqueeze(1), valid


class SliceNet(nn.Module):
    """Slice by slice; one residual layer is applied twice, with group norm as slabs differ in size."""

    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.shared = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.norm = nn.GroupNorm(4, width)
        self.exit = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = F.relu(self.enter(x))
        for _ in range(2):
            h = h + F.relu(self.norm(self.shared(h)))
        return self.exit(h)


def volume_step(net, opt, image, label, valid):
    """The gradient of the mean over all valid voxels of the volume, slab by slab to bound memory."""
    n_valid = valid.sum()
    total = 0.0
    opt.zero_grad()
    for img, lab, val in zip(image.split(SLAB), label.split(SLAB), valid.split(SLAB)):
        voxel = F.binary_cross_entropy_with_logits(net(img), lab, reduction="none")
        part = (voxel * val).sum() / n_valid
        part.backward()
        total += part.item()
    opt.step()
    return total


@torch.no_grad()
def follow(ema, net, step):
    decay = min(DECAY, (1 + step) / (10 + step))
    for slow, fast in zip(ema.parameters(), net.parameters()):
        slow.lerp_(fast, 1 - decay)


@torch.no_grad()
def dice(model, volumes):
    hits, size = 0.0, 0.0
    for image, label, valid in volumes:
        pred = (model(image) > 0).float() * valid
        hits += 2 * (pred * label).sum().item()
        size += (pred.sum() + (label * valid).sum()).item()
    return hits / max(size, 1.0)


volumes = [make_volume() for _ in range(N_VOLUMES)]
held_out = [make_volume() for _ in range(16)]
net = SliceNet()
ema = copy.deepcopy(net).requires_grad_(False).eval()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

step = 0
for epoch in range(EPOCHS):
    losses = []
    for k in torch.randperm(N_VOLUMES).tolist():
        losses.append(volume_step(net, opt, *volumes[k]))
        step += 1
        follow(ema, net, step)
    print(f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  "
          f"dice net {dice(net, held_out):.3f}  ema {dice(ema, held_out):.3f}")

image, label, valid = volumes[0]
whole = F.binary_cross_entropy_with_logits(net(image), label, weight=valid, reduction="sum") / valid.sum()
reference = torch.autograd.grad(whole, net.exit.weight)[0]
volume_step(net, opt, image, label, valid)
gap = (net.exit.weight.grad - reference).abs().max().item()
print(f"slab gradient against whole-volume gradient: largest gap {gap:.1e}")
