"""Lesion classifier trained on scanner A, then carried over to scanner B without labels.

First the normalisation statistics are measured again on scanner B (AdaBN), then the
affine part of the norms is tuned by entropy minimisation (Tent, Wang et al., 2021).
"""
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(41)

PATCH, BATCH = 16, 48
TRAIN_STEPS, TENT_STEPS = 160, 40


def patches(n, scanner):
    """Noisy tissue with or without a bright round lesion; scanner B has another gain and offset."""
    label = torch.randint(0, 2, (n,))
    grid = torch.linspace(-1, 1, PATCH)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    cx, cy = 0.8 * torch.rand(2, n, 1, 1) - 0.4
    blob = torch.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.08)
    image = label.view(n, 1, 1) * blob + 0.35 * torch.randn(n, PATCH, PATCH)
    if scanner == "B":
        image = 0.5 * image + 0.7 + 0.1 * xx
    return image.unsqueeze(1), label


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2, padding=2, padding_mode="replicate", bias=False),
            nn.BatchNorm2d(12), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1, padding_mode="replicate", bias=False),
            nn.BatchNorm2d(24), nn.ReLU(),
            nn.Flatten(), nn.Linear(24 * (PATCH // 4) ** 2, 2),
        )

    def forward(self, x):
        return self.net(x)

    def norms(self):
        return [m for m in self.modules() if isinstance(m, nn.BatchNorm2d)]


@torch.no_grad()
def accuracy(model, x, y):
    was_training = model.training
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train(was_training)
    return acc


@torch.no_grad()
def recalibrate(model, batches):
    """Replaces the running statistics by the plain average over the given batches."""
    momenta = [norm.momentum for norm in model.norms()]
    for norm in model.norms():
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    for x in batches:
        model(x)
    for norm, momentum in zip(model.norms(), momenta):
        norm.momentum = momentum
    model.eval()


def tent(model, batches, lr=2e-3):
    """Only the scale and shift of the norms move; they see the statistics of each batch."""
    model.requires_grad_(False)
    affine = [p for norm in model.norms() for p in (norm.weight, norm.bias)]
    for p in affine:
        p.requires_grad_(True)
    optimizer = torch.optim.Adam(affine, lr=lr)
    model.train()
    for x in batches:
        logp = model(x).log_softmax(1)
        entropy = -(logp.exp() * logp).sum(1).mean()
        optimizer.zero_grad()
        entropy.backward()
        optimizer.step()
    model.eval()
    return entropy.item()


model = LesionNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(TRAIN_STEPS):
    x, y = patches(BATCH, "A")
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

test_a, test_b = patches(1500, "A"), patches(1500, "B")
print(f"trained on A (loss {loss.item():.4f}): A {accuracy(model, *test_a):.3f}, B {accuracy(model, *test_b):.3f}")

adapted = copy.deepcopy(model)
unlabelled = [patches(BATCH, "B")[0] for _ in range(TENT_STEPS)]
recalibrate(adapted, unlabelled)
print(f"statistics from B: accuracy on B {accuracy(adapted, *test_b):.3f}")

entropy = tent(adapted, unlabelled)
recalibrate(adapted, unlabelled)
print(f"after Tent (entropy {entropy:.4f}): accuracy on B {accuracy(adapted, *test_b):.3f}")
