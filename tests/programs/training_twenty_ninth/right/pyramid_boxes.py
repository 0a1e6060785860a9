"""A dense detector with two pyramid levels in the manner of FCOS: one head serves both levels, each level has its own
scale, small objects belong to the fine level and large ones to the coarse level. The stem comes from a classifier
and stays as it is.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)

IMAGE, STRIDES, LIMIT = 32, (4, 8), 12


def scenes(count):
    images = 0.2 * torch.randn(count, 1, IMAGE, IMAGE)
    side = torch.randint(6, 19, (count, 1))
    start = (torch.rand(count, 2) * (IMAGE - side)).long()
    boxes = torch.cat([start, start + side], dim=1)
    for image, (x1, y1, x2, y2) in zip(images, boxes.tolist()):
        image[:, y1:y2, x1:x2] += 1.0
    return images, boxes.float()


def pair_iou(a, b):
    inner = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(dim=1)
    areas = [(t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1]) for t in (a, b)]
    return inner / (areas[0] + areas[1] - inner)


class Stem(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         nn.Conv2d(width, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))


def pretrained_stem(width, steps=25):
    """A stem trained to tell large squares from small ones."""
    net = nn.Sequential(Stem(width), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(steps):
        images, boxes = scenes(12)
        large = (boxes[:, 2] - boxes[:, 0] > LIMIT).float()
        loss = F.binary_cross_entropy_with_logits(net(images).squeeze(1), large)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net[0]


class Detector(nn.Module):
    def __init__(self, stem, width):
        super().__init__()
        self.stem = stem.requires_grad_(False)
        self.coarse = nn.Conv2d(width, width, 3, 2, 1)
        self.tower = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU(inplace=True))
        self.box = nn.Conv2d(width, 4, 3, padding=1)
        self.score = nn.Conv2d(width, 1, 3, padding=1)
        self.scales = nn.ParameterList(torch.tensor(1.0) for _ in STRIDES)
        self.score.bias.data.fill_(-2.0)

    def train(self, mode=True):
        super().train(mode)
        self.stem.eval()
        return self

    def forward(self, images):
        with torch.no_grad():
            fine = self.stem(images)
        boxes, scores = [], []
        for x, stride, scale in zip((fine, self.coarse(fine)), STRIDES, self.scales):
            x = self.tower(x)
            sides = F.softplus(self.box(x) * scale) * stride
            cy, cx = torch.meshgrid(*2 * [(torch.arange(x.shape[-1]) + 0.5) * stride], indexing="ij")
            left, top, right, bottom = sides.unbind(dim=1)
            boxes.append(torch.stack([cx - left, cy - top, cx + right, cy + bottom], dim=-1))
            scores.append(self.score(x).squeeze(1))
        return boxes, scores


@torch.no_grad()
def assign(scores, truth, level, stride):
    """Cells whose center is inside the middle of a box of this level."""
    center = (torch.arange(scores.shape[-1]) + 0.5) * stride
    gap = (center - (truth[:, :2] + truth[:, 2:]).unsqueeze(2) / 2).abs() <= 0.75 * stride
    near = gap[:, 0].unsqueeze(1) & gap[:, 1].unsqueeze(2)
    large = truth[:, 2] - truth[:, 0] > LIMIT
    return near & (large == bool(level)).view(-1, 1, 1)


def detection_loss(boxes, scores, truth):
    masks = [assign(s, truth, level, STRIDES[level]) for level, s in enumerate(scores)]
    count = sum(m.sum() for m in masks).clamp(min=1)
    box_loss = score_loss = 0.0
    for box, score, mask in zip(boxes, scores, masks):
        quality = torch.zeros_like(score)
        if mask.any():
            iou = pair_iou(box[mask], truth[mask.nonzero()[:, 0]])
            box_loss = box_loss + (1 - iou).sum()
            quality[mask] = iou.detach()
        else:
            box_loss = box_loss + 0.0 * box.sum()
        focus = (quality - score.detach().sigmoid()).abs_().square_()
        score_loss = score_loss + (focus * F.binary_cross_entropy_with_logits(score, quality, reduction="none")).sum()
    return box_loss / count, score_loss / count


def evaluate(model, images, truth):
    model.eval()
    with torch.no_grad():
        boxes, scores = model(images)
    model.train()
    best = torch.cat([s.flatten(1) for s in scores], dim=1).argmax(dim=1)
    boxes = torch.cat([b.flatten(1, 2) for b in boxes], dim=1)
    return pair_iou(boxes[torch.arange(len(truth)), best], truth).mean().item()


model = Detector(pretrained_stem(16), 16)
model.train()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW([{"params": [p for p in trained if p.dim() > 1]},
                               {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}], lr=1e-2)
held_out = scenes(32)
for step in range(60):
    images, truth = scenes(3 if step % 4 else 8)
    box_loss, score_loss = detection_loss(*model(images), truth)
    optimizer.zero_grad()
    (box_loss + 2 * score_loss).backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: box {box_loss.item():.3f} score {score_loss.item():.3f} iou {evaluate(model, *held_out):.3f}")
