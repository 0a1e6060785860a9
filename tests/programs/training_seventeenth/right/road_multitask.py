"""Segmentation and depth from one encoder; conflicting task gradients are projected (PCGrad)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
SIDE = 20
STEPS = 160

rows, cols = torch.meshgrid(torch.linspace(0, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")


def make_scenes(n):
    """A road triangle (class 1) and one box (class 2) in front of a sloped ground plane."""
    img = torch.zeros(n, 3, SIDE, SIDE)
    seg = torch.zeros(n, SIDE, SIDE, dtype=torch.long)
    depth = torch.zeros(n, SIDE, SIDE)
    for i in range(n):
        bend = 0.6 * (torch.rand(()) - 0.5)
        road = (cols - bend * (1 - rows)).abs() < 0.15 + 0.6 * rows
        seg[i][road] = 1
        depth[i] = 1.5 - rows
        top, left = torch.randint(4, SIDE - 8, (2,)).tolist()
        size = int(torch.randint(4, 8, ()))
        seg[i, top:top + size, left:left + size] = 2
        depth[i, top:top + size, left:left + size] = 1.5 - rows[min(top + size, SIDE - 1), 0]
        img[i] = F.one_hot(seg[i], 3).permute(2, 0, 1).float()
        img[i] *= (1.4 - 0.6 * depth[i])
    return img + 0.35 * torch.randn_like(img), seg, depth


class TwoHeads(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )
        self.seg_head = nn.Conv2d(width, 3, 1)
        self.depth_head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        f = self.encoder(x)
        return self.seg_head(f), self.depth_head(f).squeeze(1)


def pcgrad(losses, params):
    """Sets .grad to the sum of the task gradients, each freed of its part against another task."""
    flats = []
    for loss in losses:
        grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
        flats.append(torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(params, grads)]))
    merged, conflicts = torch.zeros_like(flats[0]), 0
    for i, own in enumerate(flats):
        own = own.clone()
        for j, other in enumerate(flats):
            inner = torch.dot(own, other)
            if i != j and inner < 0:
                own -= inner / other.dot(other).clamp(min=1e-12) * other
                conflicts += 1
        merged += own
    pos = 0
    for p in params:
        p.grad = merged[pos:pos + p.numel()].view_as(p).clone()
        pos += p.numel()
    return conflicts


net = TwoHeads()
params = list(net.parameters())
opt = torch.optim.Adam(params, lr=4e-3)
img, seg, depth = make_scenes(200)
val_img, val_seg, val_depth = make_scenes(60)
clashes = 0
for step in range(STEPS):
    idx = torch.randint(0, len(img), (12,))
    out_seg, out_depth = net(img[idx])
    loss_seg = F.cross_entropy(out_seg, seg[idx])
    loss_depth = F.l1_loss(out_depth, depth[idx])
    clashes += pcgrad([loss_seg, loss_depth], params)
    opt.step()
    if step % 40 == 39:
        print(f"step {step + 1:3d}  seg {loss_seg.item():.3f}  depth {loss_depth.item():.3f}  projections {clashes}")

net.eval()
with torch.no_grad():
    out_seg, out_depth = net(val_img)
    pixel_acc = (out_seg.argmax(1) == val_seg).float().mean().item()
    depth_err = (out_depth - val_depth).abs().mean().item()
print(f"validation pixel accuracy {pixel_acc:.3f}  depth error {depth_err:.3f}")
