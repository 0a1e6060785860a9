"""A one-stage detector without anchors on synthetic scenes: every cell of a grid predicts an objectness score and the
distances to the four sides of a box. As in the YOLO family, the objectness of a cell that holds an object is the IoU
of its predicted box with the true one, so that the score can rank the boxes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

IMAGE, GRID = 48, 6
STRIDE = IMAGE // GRID
BOX_GAIN, OBJ_GAIN = 1.0, 1.0


def scenes(count):
    """Images with one bright rectangle each, and its corners (x1, y1, x2, y2)."""
    images = 0.2 * torch.randn(count, 1, IMAGE, IMAGE)
    size = torch.randint(10, 25, (count, 2))
    start = (torch.rand(count, 2) * (IMAGE - size)).long()
    boxes = torch.cat([start, start + size], dim=1)
    for image, (x1, y1, x2, y2) in zip(images, boxes.tolist()):
        image[:, y1:y2, x1:x2] += 1.0
    return images, boxes.float()


def box_iou(a, b):
    """IoU and generalized IoU of boxes in pairs."""
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    inner = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(dim=1)
    outer = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(dim=1)
    union = area_a + area_b - inner
    iou = inner / union
    return iou, iou - (outer - union) / outer


def block(inp, out, stride):
    return nn.Sequential(nn.Conv2d(inp, out, 3, stride, 1, bias=False), nn.GroupNorm(4, out), nn.SiLU())


class Detector(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.backbone = nn.Sequential(block(1, width, 2), block(width, 2 * width, 2), block(2 * width, 2 * width, 2))
        self.box_tower = block(2 * width, 2 * width, 1)
        self.obj_tower = block(2 * width, 2 * width, 1)
        self.box = nn.Conv2d(2 * width, 4, 1)
        self.obj = nn.Conv2d(2 * width, 1, 1)
        nn.init.constant_(self.obj.bias, -2.0)
        centers = (torch.arange(GRID) + 0.5) * STRIDE
        cy, cx = torch.meshgrid(centers, centers, indexing="ij")
        self.register_buffer("centers", torch.stack([cx, cy, cx, cy]))
        self.register_buffer("signs", torch.tensor([-1.0, -1.0, 1.0, 1.0]).view(4, 1, 1))

    def forward(self, images):
        x = self.backbone(images)
        sides = F.softplus(self.box(self.box_tower(x))) * STRIDE
        boxes = self.centers + self.signs * sides
        return boxes.permute(0, 2, 3, 1), self.obj(self.obj_tower(x)).squeeze(1)


class DetectionLoss:
    """Cells are positive whose centers are less than a stride away from the middle of a box."""

    def __init__(self, centers):
        self.cx, self.cy = centers[0], centers[1]

    def assign(self, truth):
        mid = (truth[:, :2] + truth[:, 2:]) / 2
        near_x = (self.cx - mid[:, 0].view(-1, 1, 1)).abs() < STRIDE
        near_y = (self.cy - mid[:, 1].view(-1, 1, 1)).abs() < STRIDE
        return near_x & near_y

    def __call__(self, boxes, logits, truth):
        positive = self.assign(truth)
        owner = positive.nonzero()[:, 0]
        iou, giou = box_iou(boxes[positive], truth[owner])
        target = torch.zeros_like(logits)
        target[positive] = iou.clamp(0, 1)
        box_loss = (1 - giou).mean()
        obj_loss = F.binary_cross_entropy_with_logits(logits, target, reduction="sum") / len(owner)
        return BOX_GAIN * box_loss, OBJ_GAIN * obj_loss, iou.mean().item()


@torch.no_grad()
def evaluate(model, images, truth):
    """Mean IoU of the box with the highest score of each image."""
    boxes, logits = model(images)
    best = logits.flatten(1).argmax(dim=1)
    chosen = boxes.flatten(1, 2)[torch.arange(len(images)), best]
    return box_iou(chosen, truth)[0].mean().item()


model = Detector()
criterion = DetectionLoss(model.centers)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
held_out = scenes(32)

for step in range(60):
    images, truth = scenes(8)
    boxes, logits = model(images)
    box_loss, obj_loss, mean_iou = criterion(boxes, logits, truth)
    optimizer.zero_grad()
    (box_loss + obj_loss).backward()
    optimizer.step()
    scheduler.step()
    if step % 15 == 14:
        print(f"step {step + 1}: box {box_loss.item():.3f} obj {obj_loss.item():.3f} iou {mean_iou:.3f} "
              f"held-out {evaluate(model, *held_out):.3f}")
