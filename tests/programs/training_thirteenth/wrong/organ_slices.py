"""DeepLab-style fine-tuning for segmenting organs in toy CT slices: pretrained backbone, new ASPP head, poly policy."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
S, CLASSES, BATCH = 24, 4, 16
BASE_LR, HEAD_MULT, POWER, MAX_ITER = 1e-3, 20, 0.9, 120


def slices(n):
    """Body ellipse with two organs and a lesion; returns noisy intensities and label maps."""
    gy, gx = torch.meshgrid(torch.arange(S).float(), torch.arange(S).float(), indexing="ij")
    mask = torch.zeros(n, S, S, dtype=torch.long)
    for label, (radius, low, high) in enumerate([(6.0, 8, 16), (4.0, 6, 18), (2.5, 5, 19)], start=1):
        cy = torch.empty(n, 1, 1).uniform_(low, high)
        cx = torch.empty(n, 1, 1).uniform_(low, high)
        mask[((gy - cy) ** 2 + (gx - cx) ** 2) < radius ** 2] = label
    level = torch.tensor([0.0, 0.5, 1.0, 1.5])[mask]
    return (level + 0.35 * torch.randn(n, S, S))[:, None], mask


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
                                  nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())

    def forward(self, x):
        return self.body(self.stem(x))


class ASPPHead(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.branches = nn.ModuleList(nn.Conv2d(channels, 16, 3, padding=d, dilation=d) for d in (1, 2, 4))
        self.classifier = nn.Conv2d(48, CLASSES, 1)

    def forward(self, feat):
        return self.classifier(F.relu(torch.cat([branch(feat) for branch in self.branches], 1)))


class SegNet(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone, self.head = backbone, ASPPHead()

    def forward(self, x):
        return F.interpolate(self.head(self.backbone(x)), size=x.shape[-2:], mode="bilinear", align_corners=False)


def poly_lr(optimizer, it):
    lr = BASE_LR * (1 - it / MAX_ITER) ** POWER
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def mean_iou(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x).argmax(1)
    ious = [((pred == c) & (y == c)).sum() / ((pred == c) | (y == c)).sum().clamp(min=1) for c in range(CLASSES)]
    return torch.stack(ious).mean().item()


backbone = Backbone()
decoder = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(32, 1, 3, padding=1))
pre_opt = torch.optim.Adam([*backbone.parameters(), *decoder.parameters()], lr=3e-3)
pre_x, _ = slices(256)
for it in range(80):
    clean = pre_x[torch.randint(0, len(pre_x), (BATCH,))]
    restored = decoder(backbone(clean + 0.5 * torch.randn_like(clean)))
    pre_opt.zero_grad()
    F.mse_loss(restored, clean).backward()
    pre_opt.step()

train_x, train_y = slices(192)
test_x, test_y = slices(96)
net = SegNet(backbone)
optimizer = torch.optim.SGD([{"params": net.backbone.parameters(), "lr": BASE_LR},
                             {"params": net.head.parameters(), "lr": HEAD_MULT * BASE_LR}],
                            lr=BASE_LR, momentum=0.9, weight_decay=5e-4)
freq = torch.bincount(train_y.flatten(), minlength=CLASSES).float()
class_weight = (freq.sum() / freq).sqrt()
for it in range(MAX_ITER):
    net.train()
    lr = poly_lr(optimizer, it)
    idx = torch.randint(0, len(train_x), (BATCH,))
    loss = F.cross_entropy(net(train_x[idx]), train_y[idx], weight=class_weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 40 == 39:
        print(f"iter {it + 1:3d}  lr {lr:.5f}  loss {loss.item():.4f}  mIoU {mean_iou(net, test_x, test_y):.3f}")
