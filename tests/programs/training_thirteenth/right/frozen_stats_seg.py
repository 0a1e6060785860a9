"""Fine-tunes a pretrained encoder for crack segmentation with tiny micro-batches and an auxiliary edge branch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
S, IGNORE, MICRO, ACCUM, UPDATES = 28, 255, 2, 4, 60


def surfaces(n, shift):
    """Concrete-like plates with a dark crack; `shift` moves the brightness of the camera. Borders are unlabeled."""
    gy, gx = torch.meshgrid(torch.arange(S).float(), torch.arange(S).float(), indexing="ij")
    slope, bend = torch.empty(2, n, 1, 1).uniform_(-0.5, 0.5)
    start = torch.empty(n, 1, 1).uniform_(7, 21)
    center = start + slope * (gx - S / 2) + 3 * bend * torch.sin(gx / 4)
    mask = ((gy - center).abs() < 1.5).long()
    grain = F.avg_pool2d(torch.randn(n, 1, S, S), 3, 1, 1)[:, 0]
    img = 0.6 + shift - 0.5 * mask + 0.5 * grain + 0.15 * torch.randn(n, S, S)
    pad = torch.randint(0, 9, (n, 1, 1))
    mask[(gx < pad).expand(n, S, S)] = IGNORE
    return img[:, None], mask


def edges_of(mask):
    crack = (mask == 1).float()[:, None]
    return (F.max_pool2d(crack, 3, 1, 1) - crack)[:, 0]


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=2, dilation=2, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        low = F.relu(self.bn1(self.conv1(x)))
        return low, F.relu(self.bn2(self.conv2(low)))


class CrackNet(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.encoder.conv1.requires_grad_(False)
        self.seg = nn.Sequential(nn.Conv2d(33, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 2, 1))
        self.edge = nn.Sequential(nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def train(self, mode=True):
        super().train(mode)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
        return self

    def forward(self, x):
        low, high = self.encoder(x)
        edge = self.edge(low)
        seg = self.seg(torch.cat([low, high, torch.sigmoid(edge).detach()], 1))
        return seg, edge[:, 0]


def iou(net, x, y):
    net.eval()
    with torch.no_grad():
        pred = net(x)[0].argmax(1)
    valid = y != IGNORE
    hit = ((pred == 1) & (y == 1)).sum()
    return (hit / (((pred == 1) | (y == 1)) & valid).sum()).item()


# Pretraining on plenty of plates: predict blurred brightness from a noisy image, with ordinary batch statistics.
encoder = Encoder()
decoder = nn.Conv2d(32, 1, 1)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
pool, _ = surfaces(256, shift=0.0)
for _ in range(60):
    x = pool[torch.randint(0, len(pool), (16,))]
    opt.zero_grad()
    F.mse_loss(decoder(torch.cat(encoder(x + 0.2 * torch.randn_like(x)), 1)), x).backward()
    opt.step()

train_x, train_y = surfaces(80, shift=0.1)
test_x, test_y = surfaces(80, shift=0.1)
net = CrackNet(encoder)
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=3e-3)
for update in range(UPDATES):
    net.train()
    idx = torch.randint(0, len(train_x), (ACCUM * MICRO,))
    labeled = (train_y[idx] != IGNORE).sum()
    optimizer.zero_grad()
    shown = 0.0
    for part in idx.split(MICRO):
        seg, edge = net(train_x[part])
        valid = train_y[part] != IGNORE
        ce = F.cross_entropy(seg, train_y[part], ignore_index=IGNORE, reduction="sum")
        bce = F.binary_cross_entropy_with_logits(edge, edges_of(train_y[part]), reduction="none")[valid].sum()
        loss = (ce + 0.5 * bce) / labeled
        loss.backward()
        shown += loss.item()
    optimizer.step()
    if update % 20 == 19:
        print(f"update {update + 1:2d}  loss {shown:.4f}  crack IoU {iou(net, test_x, test_y):.3f}")
