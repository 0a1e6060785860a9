"""Leaf-disease classifier (Kaggle style): bfloat16 training on CPU, mixup, and a weight average for the submission.

The pictures are synthetic: a leaf texture with one of six spot patterns on it.
"""
import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = dict(seed=2024, classes=6, size=16, epochs=12, batch=32, lr=6e-3, warmup=20, mixup=0.2, decay=0.998)


def make_leaves(n, patterns, rng):
    labels = rng.integers(0, CFG["classes"], size=n)
    images = rng.normal(0, 0.9, size=(n, 1, CFG["size"], CFG["size"]))
    for i, c in enumerate(labels):
        shift = tuple(rng.integers(-2, 3, size=2))
        images[i, 0] += np.roll(patterns[c], shift, axis=(0, 1))
    return torch.tensor(images, dtype=torch.float32), torch.tensor(labels)


class LeafNet(nn.Module):
    def __init__(self, classes, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.norm1 = nn.GroupNorm(4, width)
        self.body = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.norm2 = nn.GroupNorm(4, 2 * width)
        self.fc = nn.Linear(2 * width * 16, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.stem(x))), 2)
        x = F.relu(self.norm2(self.body(x)))
        return self.fc(x.flatten(1))


class WeightAverage:
    """Exponential moving average of the weights."""

    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for avg, p in zip(self.model.parameters(), model.parameters()):
            avg.mul_(self.decay).add_(p, alpha=1 - self.decay)


def mixup(x, y, alpha, rng):
    lam = float(rng.beta(alpha, alpha))
    perm = torch.randperm(len(x))
    soft = F.one_hot(y, CFG["classes"]).float()
    return lam * x + (1 - lam) * x[perm], lam * soft + (1 - lam) * soft[perm]


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    logits = model(x.bfloat16()).float()
    return (logits.argmax(1) == y).float().mean().item()


torch.manual_seed(CFG["seed"])
rng = np.random.default_rng(CFG["seed"])
patterns = rng.normal(0, 0.8, size=(CFG["classes"], CFG["size"], CFG["size"]))
train_x, train_y = make_leaves(1440, patterns, rng)
valid_x, valid_y = make_leaves(600, patterns, rng)

model = LeafNet(CFG["classes"]).to(torch.bfloat16)  # halves the memory, and the laptop's AMX units are used
ema = WeightAverage(model, CFG["decay"])
steps = CFG["epochs"] * math.ceil(len(train_x) / CFG["batch"])
optimizer = torch.optim.SGD(model.parameters(), lr=CFG["lr"] * 5, momentum=0.9, weight_decay=1e-4)


def schedule(step):
    if step < CFG["warmup"]:
        return (step + 1) / CFG["warmup"]
    progress = (step - CFG["warmup"]) / (steps - CFG["warmup"])
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
for epoch in range(CFG["epochs"]):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(train_x)).split(CFG["batch"]):
        xb, yb = mixup(train_x[idx], train_y[idx], CFG["mixup"], rng)
        logits = model(xb.bfloat16()).float()
        loss = -(yb * F.log_softmax(logits, dim=1)).sum(1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(model)
        running += loss.item() * len(idx)
    if (epoch + 1) % 4 == 0:
        print(f"epoch {epoch + 1:2d}  train loss {running / len(train_x):.3f}  valid {accuracy(model, valid_x, valid_y):.3f}")

acc_raw, acc_ema = accuracy(model, valid_x, valid_y), accuracy(ema.model, valid_x, valid_y)
print(f"last weights {acc_raw:.3f}   averaged weights (submitted) {acc_ema:.3f}")
