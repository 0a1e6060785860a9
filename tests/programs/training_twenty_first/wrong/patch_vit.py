"""A small vision transformer trained at low resolution first and then at full resolution.

The task: which of four horizontal bands of a striped image holds the bright bar.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
PATCH, DIM, CLASSES = 4, 32, 4


def make_images(n, size=16):
    """Stripe textures with one marked band; the label is the band, counted from the top."""
    row = torch.randint(0, CLASSES, (n,))
    phase = torch.rand(n, 1, 1) * 6.28
    cols = torch.arange(size).view(1, 1, size)
    x = 0.3 * torch.sin(1.3 * cols + phase).expand(n, size, size).clone()
    band = size // CLASSES
    start = torch.randint(0, size - 4, (n,))
    for i in range(n):
        x[i, row[i] * band:(row[i] + 1) * band, start[i]:start[i] + 4] += 1.0
    return (x + 0.2 * torch.randn(n, size, size)).unsqueeze(1), row


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, grid):
        super().__init__()
        self.embed = nn.Conv2d(1, DIM, PATCH, stride=PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, DIM))
        self.pos = nn.Parameter(torch.randn(1, DIM, grid, grid) * 0.02)
        self.blocks = nn.Sequential(Block(DIM), Block(DIM))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, CLASSES)

    def set_grid(self, grid):
        """Resample the position table to another patch grid."""
        new = F.interpolate(self.pos.detach(), size=(grid, grid), mode="bicubic", align_corners=False)
        self.pos = nn.Parameter(new)

    def forward(self, x):
        tokens = (self.embed(x) + self.pos).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1)
        return self.head(self.norm(self.blocks(tokens)[:, 0]))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = (model(x).argmax(-1) == y).float().mean().item()
    model.train()
    return out


train_x, train_y = make_images(1024)
test_x, test_y = make_images(400)
stages = [(8, 60), (16, 140)]

model = ViT(grid=4)
decay = [p for p in model.parameters() if p.ndim == 2]
plain = [p for p in model.parameters() if p.ndim != 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=sum(n for _, n in stages), eta_min=1e-4)

for size, steps in stages:
    model.set_grid(size // PATCH)
    for step in range(steps):
        pick = torch.randint(0, len(train_x), (48,))
        images = train_x[pick]
        if size != 16:
            images = F.interpolate(images, size=(size, size), mode="area")
        loss = F.cross_entropy(model(images), train_y[pick], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print(f"resolution {size}: last loss {loss.item():.3f}")

top1 = evaluate(model, test_x, test_y)
print(f"position table norm {model.pos.norm().item():.3f}")
print(f"test top-1 {top1:.3f}")
