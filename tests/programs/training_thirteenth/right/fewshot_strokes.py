"""Reptile on a few-shot stroke classification problem: 5-way episodes over procedurally generated characters."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
SIZE, WAYS, SHOTS, QUERIES = 12, 5, 1, 4
META_STEPS, META_BATCH, INNER_STEPS, INNER_LR, META_LR = 90, 2, 5, 0.1, 1.5e-3


def characters(n, gen):
    """Every character is a set of three strokes (pairs of control points)."""
    return torch.rand(n, 3, 2, 2, generator=gen) * (SIZE - 3) + 1


def render(strokes):
    """(B, 3, 2, 2) jittered control points -> (B, 1, SIZE, SIZE) images."""
    strokes = strokes + 0.6 * torch.randn_like(strokes)
    t = torch.linspace(0, 1, 7)[None, None, :, None]
    points = strokes[:, :, None, 0] * (1 - t) + strokes[:, :, None, 1] * t
    grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij"), -1).float()
    d2 = ((grid[None, None] - points.flatten(1, 2)[:, :, None, None]) ** 2).sum(-1)
    img = torch.exp(-d2 / 0.8).amax(1)
    return (img + 0.4 * torch.randn_like(img))[:, None]


def episode(alphabet):
    chars = alphabet[torch.randperm(len(alphabet))[:WAYS]]
    per_class = SHOTS + QUERIES
    images = render(chars.repeat_interleave(per_class, 0)).view(WAYS, per_class, 1, SIZE, SIZE)
    labels = torch.arange(WAYS)
    support = images[:, :SHOTS].reshape(-1, 1, SIZE, SIZE), labels.repeat_interleave(SHOTS)
    query = images[:, SHOTS:].reshape(-1, 1, SIZE, SIZE), labels.repeat_interleave(QUERIES)
    return support, query


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride=2, padding=1),
                         nn.BatchNorm2d(cout, track_running_stats=False), nn.ReLU())


def build():
    return nn.Sequential(block(1, 16), block(16, 32), nn.Flatten(), nn.Linear(32 * 9, WAYS))


def adapt(model, x, y, steps):
    """Fine-tunes a private copy of the model on one episode."""
    fast = copy.deepcopy(model)
    optimizer = torch.optim.SGD(fast.parameters(), lr=INNER_LR)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()
    return fast


def evaluate(model, alphabet, episodes=30):
    correct = 0.0
    for _ in range(episodes):
        (sx, sy), (qx, qy) = episode(alphabet)
        fast = adapt(model, sx, sy, 2 * INNER_STEPS)
        fast.eval()
        with torch.no_grad():
            correct += (fast(qx).argmax(1) == qy).float().mean().item()
    return correct / episodes


gen = torch.Generator().manual_seed(6)
train_chars, test_chars = characters(60, gen), characters(25, gen)
meta = build()
meta_opt = torch.optim.Adam(meta.parameters(), lr=META_LR, betas=(0.0, 0.999))
print(f"test accuracy from random initialisation {evaluate(meta, test_chars):.3f}")

for step in range(META_STEPS):
    meta_opt.zero_grad()
    distance = 0.0
    for _ in range(META_BATCH):
        support, query = episode(train_chars)
        x, y = torch.cat([support[0], query[0]]), torch.cat([support[1], query[1]])
        fast = adapt(meta, x, y, INNER_STEPS)
        for p, q in zip(meta.parameters(), fast.parameters()):
            delta = (p.data - q.data) / META_BATCH
            p.grad = delta if p.grad is None else p.grad + delta
            distance += delta.norm().item()
    meta_opt.step()
    for group in meta_opt.param_groups:
        group["lr"] = META_LR * (1 - (step + 1) / META_STEPS)
    if step % 45 == 44:
        print(f"meta step {step + 1:3d}  inner displacement {distance:.3f}  "
              f"test accuracy {evaluate(meta, test_chars):.3f}")
