"""Mask refinement at uncertain points (PointRend) on a frozen, pretrained encoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 32


def make_scenes(n, generator):
    grid = torch.arange(SIZE, dtype=torch.float32)
    images, masks = [], []
    for _ in range(n):
        cy, cx, ry, rx = (torch.rand(4, generator=generator) * torch.tensor([8.0, 8.0, 2.0, 2.0])).tolist()
        dy, dx = (grid[:, None] - 12 - cy).abs(), (grid[None, :] - 12 - cx).abs()
        inside = ((dy < 1.5 + ry) & (dx < 10)) | ((dx < 1.5 + rx) & (dy < 10))
        texture = torch.where(inside, (grid[:, None] + grid[None, :]) % 2, (grid[:, None] // 2) % 2)
        images.append((texture + 0.2 * torch.randn(SIZE, SIZE, generator=generator))[None])
        masks.append(inside[None].float())
    return torch.stack(images), torch.stack(masks)


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Encoder(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.low = nn.Sequential(block(1, width, 1), block(width, width, 1))
        self.high = nn.Sequential(block(width, 2 * width, 2), block(2 * width, 2 * width, 2))

    def forward(self, x):
        low = self.low(x)
        return low, self.high(low)


def pretrain(encoder, generator, steps=40):
    """Stand-in for published weights: how much of the image the object covers."""
    images, masks = make_scenes(96, generator)
    probe = nn.Linear(24, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *probe.parameters()], lr=5e-3)
    cover = masks.mean(dim=(1, 2, 3))
    for _ in range(steps):
        pick = torch.randint(0, len(images), (16,))
        predicted = probe(encoder(images[pick])[1].mean(dim=(2, 3))).squeeze(1)
        loss = F.mse_loss(predicted, cover[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder


def point_sample(maps, points):
    return F.grid_sample(maps, 2 * points.unsqueeze(2) - 1, align_corners=False).squeeze(3)


class PointSegmenter(nn.Module):
    def __init__(self, encoder, width=12):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.coarse = nn.Sequential(nn.Conv2d(2 * width, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 1, 1))
        self.point_head = nn.Sequential(nn.Conv1d(width + 1, 32, 1), nn.ReLU(), nn.Conv1d(32, 1, 1))

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            low, high = self.encoder(x)
        return low, self.coarse(high)

    def refine(self, low, coarse, points):
        return self.point_head(torch.cat([point_sample(low, points), point_sample(coarse, points)], 1))

    @torch.no_grad()
    def uncertain_points(self, coarse, count, oversample=3, random_share=0.25):
        candidates = torch.rand(len(coarse), count * oversample, 2)
        doubt = -point_sample(coarse, candidates).abs().squeeze(1)
        chosen = doubt.topk(int(count * (1 - random_share)), dim=1).indices
        picked = candidates.gather(1, chosen.unsqueeze(2).expand(-1, -1, 2))
        return torch.cat([picked, torch.rand(len(coarse), count - picked.shape[1], 2)], 1)

    @torch.no_grad()
    def predict(self, x, count=256):
        low, coarse = self(x)
        full = F.interpolate(coarse, scale_factor=4, mode="bilinear", align_corners=False)
        index = (-full.flatten(1).abs()).topk(count, dim=1).indices
        points = torch.stack([index % SIZE, index // SIZE], 2).add(0.5) / SIZE
        refined = self.refine(low, coarse, points).squeeze(1)
        return full, full.flatten(1).scatter(1, index, refined).view_as(full)


def iou(logits, masks):
    predicted, truth = logits > 0, masks > 0.5
    return ((predicted & truth).sum() / (predicted | truth).sum()).item()


torch.manual_seed(9)
generator = torch.Generator().manual_seed(90)
model = PointSegmenter(pretrain(Encoder(), generator))
images, masks = make_scenes(96, generator)
test_images, test_masks = make_scenes(32, generator)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
for step in range(120):
    model.train()
    pick = torch.randint(0, len(images), (8,))
    low, coarse = model(images[pick])
    points = model.uncertain_points(coarse, 64)
    with torch.no_grad():
        truth = point_sample(masks[pick], points)
    coarse_loss = F.binary_cross_entropy_with_logits(coarse, F.avg_pool2d(masks[pick], 4))
    point_loss = F.binary_cross_entropy_with_logits(model.refine(low, coarse, points), truth)
    optimizer.zero_grad()
    (coarse_loss + point_loss).backward()
    optimizer.step()
    if (step + 1) % 30 == 0:
        print(f"step {step + 1:4d}  coarse {coarse_loss.item():.3f}  points {point_loss.item():.3f}")
model.eval()
before, after = model.predict(test_images)
print(f"IoU coarse {iou(before, test_masks):.3f}  refined {iou(after, test_masks):.3f}")
