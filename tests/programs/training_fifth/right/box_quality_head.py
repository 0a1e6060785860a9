"""Detection head on anchors: IoU targets for the quality score are taken from the predicted boxes without gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)

ANCHORS, FEATURES = 16, 12
centers = torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij"), -1).reshape(-1, 2) + 0.5
projection = torch.randn(6, FEATURES)


def make_images(n):
    """One object per image; each anchor sees its offset to the object, with noise."""
    xy = torch.rand(n, 2) * 3 + 0.5
    wh = 0.8 + torch.rand(n, 2)
    boxes = torch.cat([xy - wh / 2, xy + wh / 2], -1)
    offset = xy[:, None] - centers
    near = torch.exp(-offset.norm(dim=-1, keepdim=True))
    seen = torch.cat([offset, wh[:, None].expand(-1, ANCHORS, -1), near, near ** 2], -1)
    return seen @ projection + 0.2 * torch.randn(n, ANCHORS, FEATURES), boxes


def iou(a, b):
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    return inter / (area - inter + 1e-6)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.box = nn.Linear(48, 4)
        self.quality = nn.Linear(48, 1)

    def forward(self, x):
        h = self.trunk(x)
        shift, log_size = self.box(h).split(2, -1)
        middle, size = centers + shift, log_size.clamp(-3, 2).exp()
        return torch.cat([middle - size / 2, middle + size / 2], -1), self.quality(h).squeeze(-1)


@torch.no_grad()
def assign(boxes):
    """The anchors whose centre lies closest to the object are positive."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    distance = (middle[:, None] - centers).norm(dim=-1)
    return distance <= distance.topk(3, largest=False).values[:, -1:]


def detection_loss(model, x, boxes):
    predicted, score = model(x)
    target = boxes[:, None].expand_as(predicted)
    positive = assign(boxes)
    overlap = iou(predicted, target)
    l1 = F.l1_loss(predicted[positive], target[positive])
    box_loss = l1 + (1 - overlap[positive]).mean()
    # the score has to forecast the overlap; the overlap is a label here, boxes must not bend to the score
    label = torch.where(positive, overlap, torch.zeros_like(overlap)).detach()
    return box_loss + F.binary_cross_entropy_with_logits(score, label)


model = Head()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=300)
for step in range(300):
    loss = detection_loss(model, *make_images(48))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    if step % 60 == 59:
        with torch.no_grad():
            x, boxes = make_images(400)
            predicted, score = model(x)
            best = predicted[torch.arange(400), score.argmax(1)]
            overlap = iou(best, boxes)
        print(f"step {step}  loss {loss.item():.3f}  mean iou {overlap.mean():.3f}  recall@0.5 {(overlap > 0.5).float().mean():.3f}")
