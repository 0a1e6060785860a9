"""Single-shot detector on synthetic squares: anchors on a 8x8 grid, two classes, IoU matching."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, STRIDE, SCALES = 48, 6, (9.0, 18.0)


def make_anchors():
    centre = torch.arange(SIZE // STRIDE) * STRIDE + STRIDE / 2
    cy, cx = torch.meshgrid(centre, centre, indexing="ij")
    grid = torch.stack([cx, cy], -1).reshape(-1, 1, 2).expand(-1, len(SCALES), 2)
    wh = torch.tensor(SCALES).view(1, -1, 1).expand(grid.shape[0], -1, 2)
    return torch.cat([grid - wh / 2, grid + wh / 2], -1).reshape(-1, 4)


def box_iou(a, b):
    lt, rb = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


def encode(gt, anchors):
    wh = anchors[:, 2:] - anchors[:, :2]
    return torch.cat([(gt[:, :2] - anchors[:, :2]) / wh, (gt[:, 2:] - anchors[:, 2:]) / wh], -1) / 0.2


def decode(delta, anchors):
    wh = anchors[:, 2:] - anchors[:, :2]
    return anchors + delta * 0.2 * torch.cat([wh, wh], -1)


def match(anchors, boxes, labels, hi=0.5, lo=0.35):
    """Class per anchor (0 background, -1 ignored) and the index of the box it is responsible for."""
    iou = box_iou(anchors, boxes)
    best_iou, best_box = iou.max(dim=1)
    target = labels[best_box].clone()
    # every box keeps at least its best anchor
    best_anchor = iou.argmax(dim=0)
    best_box[best_anchor] = torch.arange(len(boxes))
    target[best_anchor] = labels
    target[best_iou < hi] = -1
    target[best_iou < lo] = 0
    return target, best_box


def make_scene(gen):
    """One small and one large object in opposite halves; the class is the channel that lights up."""
    image = 0.15 * torch.randn(3, SIZE, SIZE, generator=gen)
    boxes, labels = [], []
    for half, (low, high) in enumerate([(5, 12), (13, 21)]):
        w, h = (torch.randint(low, high, (2,), generator=gen)).tolist()
        x = half * 24 + int(torch.randint(0, max(24 - w, 1), (1,), generator=gen))
        y = int(torch.randint(0, SIZE - h, (1,), generator=gen))
        c = int(torch.randint(0, 2, (1,), generator=gen))
        image[c, y:y + h, x:x + w] += 1.0
        boxes.append([x, y, x + w, y + h])
        labels.append(c + 1)
    return image, torch.tensor(boxes).float(), torch.tensor(labels)


class Detector(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.classes = classes
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 48, 3, 2, padding=1),
                                  nn.ReLU(), nn.Conv2d(48, 48, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(48, len(SCALES) * (classes + 4), 3, padding=1)

    def forward(self, x):
        out = self.head(self.body(x)).permute(0, 2, 3, 1).reshape(len(x), -1, self.classes + 4)
        return out[..., :self.classes], out[..., self.classes:]


@torch.no_grad()
def recall(model, scenes, anchors):
    found = torch.zeros(2)
    logits, delta = model(torch.stack([s[0] for s in scenes]))
    for (_, boxes, labels), p, d in zip(scenes, logits.softmax(-1), delta):
        score, cls = p.max(-1)
        keep = (cls > 0) & (score > 0.5)
        hit = (box_iou(decode(d[keep], anchors[keep]), boxes) > 0.5) & (cls[keep][:, None] == labels[None])
        found += hit.any(0).float() if keep.any() else torch.zeros(2)
    return found / len(scenes)

STEPS, BATCH = 150, 12
torch.manual_seed(0)
gen = torch.Generator().manual_seed(1)
train, test = [make_scene(gen) for _ in range(400)], [make_scene(gen) for _ in range(100)]
anchors = make_anchors()
matches = [match(anchors, b, l) for _, b, l in train]
model = Detector()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(STEPS):
    idx = torch.randint(0, len(train), (BATCH,), generator=gen).tolist()
    logits, delta = model(torch.stack([train[i][0] for i in idx]))
    target = torch.stack([matches[i][0] for i in idx])
    box = torch.stack([encode(train[i][1][matches[i][1]], anchors) for i in idx])
    positive = target > 0
    cls_loss = F.cross_entropy(logits.transpose(1, 2), target, ignore_index=-1, reduction="sum")
    box_loss = F.smooth_l1_loss(delta[positive], box[positive], reduction="sum")
    loss = (cls_loss + box_loss) / positive.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"step {step + 1} loss {loss.item():.3f}")
test_recall = recall(model, test, anchors)
print(f"recall small {test_recall[0]:.2f} large {test_recall[1]:.2f}")
