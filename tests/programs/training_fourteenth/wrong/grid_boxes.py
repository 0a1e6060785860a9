"""Chapter 4 experiment: one-stage detector with anchors on synthetic 'blob' images.

Every image holds one to three bright rectangles. The head predicts for each of the 8x8 cells and each of
two anchors (wide / tall) an objectness logit and four offsets (dx, dy, log w, log h).
"""
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 7
GRID, STRIDE = 8, 4
ANCHORS = torch.tensor([[8.0, 4.0], [4.0, 8.0]])
NUM_A, NUM_V = len(ANCHORS), 5


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_scene(rng):
    image = rng.normal(0, 0.15, size=(1, 32, 32)).astype("float32")
    target = np.zeros((GRID, GRID, NUM_A, NUM_V), dtype="float32")
    for _ in range(rng.integers(1, 4)):
        a = int(rng.integers(NUM_A))
        w, h = ANCHORS[a].numpy() * rng.uniform(0.8, 1.25, size=2)
        cx, cy = rng.uniform(5, 27, size=2)
        x0, x1 = int(cx - w / 2), int(math.ceil(cx + w / 2))
        y0, y1 = int(cy - h / 2), int(math.ceil(cy + h / 2))
        image[0, max(y0, 0):y1, max(x0, 0):x1] += 1.0
        col, row = int(cx // STRIDE), int(cy // STRIDE)
        target[row, col, a] = [1.0, cx / STRIDE - col, cy / STRIDE - row,
                               np.log(w / ANCHORS[a, 0].item()), np.log(h / ANCHORS[a, 1].item())]
    return image, target


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    images, targets = zip(*(make_scene(rng) for _ in range(n)))
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(targets))


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Conv2d(width, NUM_A * NUM_V, 1)

    def forward(self, x):
        out = self.head(self.backbone(x))
        # cells first, then anchors, then the five values of an anchor
        return out.view(x.shape[0], GRID, GRID, NUM_A, NUM_V)


def detection_loss(pred, target):
    positive = target[..., 0] > 0.5
    obj = F.binary_cross_entropy_with_logits(pred[..., 0], target[..., 0], reduction="sum")
    box = F.smooth_l1_loss(pred[..., 1:][positive], target[..., 1:][positive], reduction="sum")
    return (obj + 2.0 * box) / positive.sum().clamp(min=1)


@torch.no_grad()
def evaluate(model, images, targets):
    model.eval()
    pred = model(images)
    positive = targets[..., 0] > 0.5
    scores = pred[..., 0].flatten()
    order = scores.argsort(descending=True)
    hits = positive.flatten()[order].float()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    ap = (precision * hits).sum() / hits.sum()
    err = (pred[..., 1:][positive] - targets[..., 1:][positive]).abs().mean()
    return ap.item(), err.item()


set_seed(SEED)
train_x, train_t = make_set(384, seed=1)
val_x, val_t = make_set(128, seed=2)
model = Detector()
epochs, batch = 9, 32
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=epochs * len(train_x) // batch)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(batch):
        loss = detection_loss(model(train_x[idx]), train_t[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
    if epoch % 4 == 0 or epoch == epochs - 1:
        val_ap, val_err = evaluate(model, val_x, val_t)
        print(f"epoch {epoch}: loss {total / len(train_x):.3f}  val AP {val_ap:.3f}  offset error {val_err:.3f}")
