"""Maximum classifier discrepancy (Saito et al., 2018): adapting a character classifier to rotated strokes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
CLASSES, STEPS, BATCH, GENERATOR_STEPS = 2, 300, 96, 3


def strokes(n, degrees):
    """Two interleaved arcs, lifted to a noisy 10-d measurement; the target domain is a rotated copy."""
    y = torch.arange(n) % 2
    t = math.pi * torch.rand(n)
    sign = 1.0 - 2.0 * y.float()
    xy = torch.stack([sign * torch.cos(t) + y.float() - 0.5, sign * torch.sin(t) + 0.5 * y.float() - 0.25], dim=1)
    xy = xy + 0.07 * torch.randn(n, 2)
    a = math.radians(degrees)
    rotation = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    return (xy @ rotation.T) @ LIFT + 0.02 * torch.randn(n, 10), y


def classifier(width=32):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


def discrepancy(p, q):
    return (F.softmax(p, dim=1) - F.softmax(q, dim=1)).abs().mean()


LIFT = torch.randn(2, 10) / math.sqrt(2)
x_src, y_src = strokes(800, 0)
x_tgt, _ = strokes(800, 28)
x_test, y_test = strokes(1000, 28)

features = nn.Sequential(nn.Linear(10, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU())
head_a, head_b = classifier(), classifier()
opt_features = torch.optim.Adam(features.parameters(), lr=1e-3)
opt_heads = torch.optim.Adam([*head_a.parameters(), *head_b.parameters()], lr=1e-3)


def source_loss(z, y):
    return F.cross_entropy(head_a(z), y) + F.cross_entropy(head_b(z), y)


def clear():
    opt_features.zero_grad()
    opt_heads.zero_grad()


def evaluate(x, y):
    with torch.no_grad():
        z = features(x)
        return ((head_a(z) + head_b(z)).argmax(1) == y).float().mean().item()


for step in range(STEPS):
    i = torch.randint(0, len(x_src), (BATCH,))
    j = torch.randint(0, len(x_tgt), (BATCH,))
    xs, ys, xt = x_src[i], y_src[i], x_tgt[j]

    # A: everything learns the labelled source
    clear()
    source = source_loss(features(xs), ys)
    source.backward()
    opt_features.step()
    opt_heads.step()

    # B: the heads move apart on the target; the features are only read here
    clear()
    with torch.no_grad():
        z_src, z_tgt = features(xs), features(xt)
    apart = discrepancy(head_a(z_tgt), head_b(z_tgt))
    (source_loss(z_src, ys) - apart).backward()
    opt_heads.step()

    # C: the features bring the heads together again; the heads collect gradients too, but do not step
    for _ in range(GENERATOR_STEPS):
        clear()
        z = features(xt)
        together = discrepancy(head_a(z), head_b(z))
        together.backward()
        opt_features.step()

    if (step + 1) % 60 == 0:
        print(f"step {step + 1}: source {source.item():.3f}  apart {apart.item():.3f}  together {together.item():.3f}")

print(f"accuracy: source {evaluate(x_src, y_src):.3f}  target {evaluate(x_test, y_test):.3f}")
