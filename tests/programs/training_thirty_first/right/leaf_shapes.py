"""Leaf outlines sorted by species with sharpness-aware minimisation (Foret et al., 2021).

Each step takes two gradients: one at the weights, one at the nearby weights of highest loss, whose direction the base
optimizer then follows from the original weights.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

POINTS = 24
SPECIES = 4
STEPS = 140
BATCH = 64


def outlines(count):
    label = torch.randint(0, SPECIES, (count,))
    angle = torch.linspace(0.0, 2.0 * math.pi, POINTS + 1)[:-1]
    lobes = (label + 2).unsqueeze(1).float()
    turn = 0.4 * torch.randn(count, 1)
    depth = 0.2 + 0.2 * torch.rand(count, 1)
    radius = 1.0 + depth * torch.cos(lobes * (angle + turn)) + 0.12 * torch.randn(count, POINTS)
    return radius, label


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def _grad_norm(self):
        return torch.stack(
            [p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None]
        ).norm(p=2)


def set_running_stats(model, active):
    """The second pass normalises by its batch as the first one, but leaves the running statistics alone."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            if active:
                module.momentum = module.kept_momentum
            else:
                module.kept_momentum = module.momentum
                module.momentum = 0


def build():
    return nn.Sequential(
        nn.Linear(POINTS, 48, bias=False),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 32, bias=False),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, SPECIES),
    )


torch.manual_seed(29)
train_x, train_label = outlines(1200)
test_x, test_label = outlines(800)
model = build()
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=STEPS)

for step in range(STEPS):
    index = torch.randint(0, len(train_x), (BATCH,))
    x, label = train_x[index], train_label[index]

    loss = F.cross_entropy(model(x), label)
    loss.backward()
    optimizer.first_step(zero_grad=True)

    set_running_stats(model, False)
    F.cross_entropy(model(x), label).backward()
    optimizer.second_step(zero_grad=True)
    set_running_stats(model, True)
    schedule.step()

    if (step + 1) % 35 == 0:
        print(f"step {step + 1:4d}  loss {loss.item():.4f}  lr {schedule.get_last_lr()[0]:.4f}")

model.eval()
with torch.no_grad():
    accuracy = (model(test_x).argmax(dim=1) == test_label).float().mean().item()
print(f"accuracy on new leaves {accuracy:.3f}")
