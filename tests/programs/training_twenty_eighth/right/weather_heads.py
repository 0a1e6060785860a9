"""Three forecasts from one trunk, with projection of conflicting gradients (PCGrad, Yu et al. 2020)."""
import random

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = 10
TASKS = ("rain", "wind", "frost")


def make_weather(count, generator):
    x = torch.randn(count, INPUTS, generator=generator)
    rain = torch.relu(x[:, 0] + x[:, 1]) + 0.1 * torch.randn(count, generator=generator)
    wind = torch.tanh(x[:, 2] - x[:, 0]) * 2 + 0.1 * torch.randn(count, generator=generator)
    frost = (x[:, 3] - x[:, 1] + 0.3 * torch.randn(count, generator=generator) > 0).float()
    return x, {"rain": rain, "wind": wind, "frost": frost}


class WeatherNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(INPUTS, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleDict({task: nn.Linear(hidden, 1) for task in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return {task: head(h).squeeze(1) for task, head in self.heads.items()}


def task_losses(outputs, targets):
    return [
        F.smooth_l1_loss(outputs["rain"], targets["rain"]),
        F.smooth_l1_loss(outputs["wind"], targets["wind"]),
        F.binary_cross_entropy_with_logits(outputs["frost"], targets["frost"]),
    ]


def flat_gradient(loss, params):
    grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(grads, params)])


def project(gradients, rng):
    """Each task's gradient loses its parts against the other tasks; the sum is returned."""
    projected = [g.clone() for g in gradients]
    conflicts = 0
    for i, g in enumerate(projected):
        others = [j for j in range(len(gradients)) if j != i]
        rng.shuffle(others)
        for j in others:
            dot = torch.dot(g, gradients[j])
            if dot < 0:
                g.sub_(gradients[j], alpha=(dot / gradients[j].dot(gradients[j])).item())
                conflicts += 1
    return torch.stack(projected).sum(0), conflicts


def set_gradient(params, flat):
    offset = 0
    for p in params:
        n = p.numel()
        p.grad = flat[offset:offset + n].view_as(p)
        offset += n


@torch.no_grad()
def evaluate(model, data):
    x, targets = data
    return [loss.item() for loss in task_losses(model(x), targets)]


def train(steps=250):
    generator = torch.Generator().manual_seed(6)
    rng = random.Random(6)
    x, targets = make_weather(2000, generator)
    valid = make_weather(500, generator)
    model = WeatherNet()
    params = list(model.parameters())
    optimizer = torch.optim.Adam(params, lr=3e-3)

    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (64,), generator=generator)
        losses = task_losses(model(x[idx]), {task: t[idx] for task, t in targets.items()})
        gradients = [flat_gradient(loss, params) for loss in losses]
        merged, conflicts = project(gradients, rng)
        set_gradient(params, merged)
        nn.utils.clip_grad_norm_(params, 2.0)
        optimizer.step()
        if step % 50 == 0:
            shown = "  ".join(f"{task} {loss:.3f}" for task, loss in zip(TASKS, evaluate(model, valid)))
            print(f"step {step:4d}  {shown}  conflicts {conflicts}")
    return model, evaluate(model, valid)


if __name__ == "__main__":
    torch.manual_seed(12)
    model, final = train()
