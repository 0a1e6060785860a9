"""Three forecasts of a greenhouse from one trunk, with projected task gradients (gradient surgery)."""
import random

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(31)
random.seed(31)

SENSORS, WIDTH = 12, 32
TASKS = ("humidity", "frost", "growth")
TRAIN, TEST, BATCH, EPOCHS = 768, 256, 64, 9


class GreenhouseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(SENSORS, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.heads = nn.ModuleDict({task: nn.Linear(WIDTH, 1) for task in TASKS})

    def forward(self, readings):
        shared = self.trunk(readings)
        return {task: head(shared).squeeze(1) for task, head in self.heads.items()}


def make_readings(count):
    readings = torch.randn(count, SENSORS)
    inside, outside, water = readings[:, :4].mean(1), readings[:, 4:8].mean(1), readings[:, 8:].mean(1)
    humidity = 2 * torch.tanh(2 * water - inside) + 0.1 * torch.randn(count)
    frost = (outside * 3 + inside - 0.5 * torch.randn(count) < -0.3).float()
    growth = 4 * inside * (1 + water) - 2 * water + 0.2 * torch.randn(count)
    return readings, {"humidity": humidity, "frost": frost, "growth": growth}


def task_losses(outputs, targets):
    return {
        "humidity": F.mse_loss(outputs["humidity"], targets["humidity"]),
        "frost": F.binary_cross_entropy_with_logits(outputs["frost"], targets["frost"]),
        "growth": F.mse_loss(outputs["growth"], targets["growth"]),
    }


def flatten(tensors):
    return torch.cat([t.flatten() for t in tensors])


def project(gradients):
    """Remove from each task's gradient what opposes another task's, in random order; return the sum."""
    projected = [g.clone() for g in gradients]
    for i, gradient in enumerate(projected):
        others = [j for j in range(len(gradients)) if j != i]
        random.shuffle(others)
        for j in others:
            dot = torch.dot(gradient, gradients[j])
            if dot < 0:
                gradient -= dot / gradients[j].square().sum() * gradients[j]
    return torch.stack(projected).sum(dim=0)


def assign_gradients(model, losses):
    """Fill `.grad`: heads from their own loss, the trunk from the projected gradients."""
    trunk = list(model.trunk.parameters())
    shared = []
    for position, task in enumerate(TASKS):
        head = list(model.heads[task].parameters())
        gradients = torch.autograd.grad(losses[task], trunk + head, retain_graph=position < len(TASKS) - 1)
        shared.append(flatten(gradients[:len(trunk)]))
        for parameter, gradient in zip(head, gradients[len(trunk):]):
            parameter.grad = gradient
    combined = project(shared)
    for parameter, piece in zip(trunk, combined.split([p.numel() for p in trunk])):
        parameter.grad = piece.view_as(parameter)
    cosine = F.cosine_similarity(shared[0], shared[2], dim=0)
    return cosine.item()


@torch.no_grad()
def evaluate(model, readings, targets):
    return {task: loss.item() for task, loss in task_losses(model(readings), targets).items()}


train_x, train_y = make_readings(TRAIN)
test_x, test_y = make_readings(TEST)
model = GreenhouseNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(EPOCHS):
    cosines = []
    for rows in torch.randperm(TRAIN).split(BATCH):
        losses = task_losses(model(train_x[rows]), {task: y[rows] for task, y in train_y.items()})
        cosines.append(assign_gradients(model, losses))
        optimizer.step()
    if (epoch + 1) % 3 == 0:
        scores = "  ".join(f"{task} {value:.3f}" for task, value in evaluate(model, test_x, test_y).items())
        conflicts = sum(c < 0 for c in cosines) / len(cosines)
        print(f"epoch {epoch + 1:2d}  {scores}  humidity against growth in {conflicts:.0%} of the steps")
