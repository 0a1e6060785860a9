"""Anchor-free detector (in the manner of FCOS) for one rectangle per picture, with a centerness branch for the ranking."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
SIZE, STRIDE = 32, 4
GRID = SIZE // STRIDE


def make_scenes(n):
    """Grey pictures with a bright rectangle on noise; boxes are x1, y1, x2, y2 in pixels."""
    wh = torch.randint(10, 23, (n, 2))
    corner = (torch.rand(n, 2) * (SIZE - wh)).long()
    boxes = torch.cat([corner, corner + wh], dim=1).float()
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    x1, y1, x2, y2 = (v[:, None, None] for v in boxes.unbind(1))
    inside = ((xs >= x1) & (xs < x2) & (ys >= y1) & (ys < y2)).float()
    level = 0.5 + 0.5 * torch.rand(n, 1, 1)
    return (inside * level + 0.2 * torch.randn(n, SIZE, SIZE))[:, None], boxes


def to_cells(maps):
    """N x C x H x W -> N x cells x C"""
    return maps.flatten(2).transpose(1, 2)


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 5, padding=2), nn.ReLU(),
        )
        self.score_tower = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU())
        self.box_tower = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU())
        self.objectness = nn.Conv2d(width, 1, 1)
        self.centerness = nn.Conv2d(width, 1, 1)
        self.sides = nn.Conv2d(width, 4, 1)
        nn.init.constant_(self.sides.bias, 1.0)

    def forward(self, x):
        maps = self.trunk(x)
        score_maps, box_maps = self.score_tower(maps), self.box_tower(maps)
        sides = F.softplus(self.sides(box_maps)) * STRIDE
        return to_cells(self.objectness(score_maps)), to_cells(self.centerness(box_maps)), to_cells(sides)


def cell_centers():
    steps = (torch.arange(GRID) + 0.5) * STRIDE
    ys, xs = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack([xs.flatten(), ys.flatten()], dim=1)


def side_targets(boxes, centers):
    """Distances of every cell to the left, top, right and bottom side of the rectangle of its picture."""
    return torch.cat([centers[None] - boxes[:, None, :2], boxes[:, None, 2:] - centers[None]], dim=-1)


def overlap(a, b):
    """IoU of boxes given as the distances of one point to their four sides."""
    both = torch.minimum(a, b)
    inter = (both[..., 0] + both[..., 2]).clamp(min=0) * (both[..., 1] + both[..., 3]).clamp(min=0)
    area_a = (a[..., 0] + a[..., 2]) * (a[..., 1] + a[..., 3])
    area_b = (b[..., 0] + b[..., 2]) * (b[..., 1] + b[..., 3])
    return inter / (area_a + area_b - inter + 1e-6)


def centerness_target(sides):
    across, down = sides[..., [0, 2]], sides[..., [1, 3]]
    ratio = across.amin(-1) / across.amax(-1) * down.amin(-1) / down.amax(-1)
    return ratio.sqrt()


def soft_cross_entropy(logits, target):
    """Binary cross-entropy with targets between 0 and 1."""
    return (F.softplus(logits) - target * logits).mean()


def losses(model, images, boxes, centers):
    objectness, centerness, sides = model(images)
    wanted = side_targets(boxes, centers)
    positive = wanted.amin(-1) > 0
    object_loss = F.binary_cross_entropy_with_logits(objectness, positive[..., None].float())
    center_loss = soft_cross_entropy(centerness[positive], centerness_target(wanted[positive]))
    box_loss = (1 - overlap(sides[positive], wanted[positive])).mean()
    return object_loss, center_loss, box_loss


@torch.no_grad()
def evaluate(model, images, boxes, centers):
    objectness, centerness, sides = model(images)
    ranking = (objectness.sigmoid() * centerness.sigmoid()).squeeze(-1)
    rows, best = torch.arange(len(images)), ranking.argmax(1)
    iou = overlap(sides[rows, best], side_targets(boxes, centers)[rows, best])
    return iou.mean().item(), (iou > 0.7).float().mean().item()


def main(steps=120, batch=12):
    model, centers = Detector(), cell_centers()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    test = make_scenes(100)
    for step in range(steps):
        parts = losses(model, *make_scenes(batch), centers)
        loss = sum(parts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            mean_iou, hits = evaluate(model, *test, centers)
            text = "  ".join(f"{name} {part.item():.3f}" for name, part in zip(("object", "center", "box"), parts))
            print(f"step {step + 1:3d}  {text}  IoU {mean_iou:.3f}  hits {hits:.3f}")
    return model, centers, test


if __name__ == "__main__":
    model, centers, test = main()
