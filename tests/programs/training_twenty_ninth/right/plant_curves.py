"""Few-shot forecasting of power curves for new plants: first-order MAML with hand-written updates."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

META_STEPS, TASKS, INNER_STEPS, INNER_LR, SHOTS = 60, 4, 3, 0.03, 10


class CurveNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 1)

    def forward(self, hour):
        features = torch.cat([hour, torch.sin(math.pi * hour), torch.cos(math.pi * hour)], dim=1)
        return self.head(self.body(features))


def make_plant(generator):
    amp, peak, base = torch.rand(3, generator=generator).tolist()
    amp, peak, base = 0.5 + 1.5 * amp, 2 * math.pi * peak, base - 0.5

    def curve(hour):
        return base + amp * torch.sin(math.pi * hour + peak)

    return curve


def sample(curve, n, generator):
    hour = 2 * torch.rand(n, 1, generator=generator) - 1
    return hour, curve(hour) + 0.05 * torch.randn(n, 1, generator=generator)


def adapted_copy(model, hour, power, steps):
    """A copy of the model after a few plain gradient steps on the support set."""
    learner = copy.deepcopy(model)
    weights = list(learner.parameters())
    for _ in range(steps):
        loss = F.mse_loss(learner(hour), power)
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, g in zip(weights, grads):
                w -= INNER_LR * g
    return learner


def meta_step(model, optimizer, generator):
    """The first-order meta gradient: the query gradient at the adapted weights, averaged over plants."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    query_loss = 0.0
    for _ in range(TASKS):
        curve = make_plant(generator)
        learner = adapted_copy(model, *sample(curve, SHOTS, generator), INNER_STEPS)
        hour, power = sample(curve, SHOTS, generator)
        loss = F.mse_loss(learner(hour), power)
        for t, g in zip(total, torch.autograd.grad(loss, list(learner.parameters()))):
            t.add_(g, alpha=1.0 / TASKS)
        query_loss += loss.item() / TASKS
    for p, t in zip(model.parameters(), total):
        p.grad = t
    optimizer.step()
    return query_loss


def few_shot_error(model, plants, generator, steps):
    grid = torch.linspace(-1, 1, 50)[:, None]
    errors = []
    for curve in plants:
        learner = adapted_copy(model, *sample(curve, SHOTS, generator), steps)
        with torch.no_grad():
            errors.append(F.mse_loss(learner(grid), curve(grid)).item())
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(2)
    model = CurveNet()
    scratch = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(9)
    for step in range(META_STEPS):
        loss = meta_step(model, optimizer, generator)
        if step % 20 == 0:
            print(f"meta step {step:3d}  query loss {loss:.4f}")

    test = torch.Generator().manual_seed(100)
    plants = [make_plant(test) for _ in range(25)]
    print(f"new plants, no adaptation   {few_shot_error(model, plants, test, 0):.4f}")
    print(f"new plants, random start    {few_shot_error(scratch, plants, test, INNER_STEPS):.4f}")
    print(f"new plants, learned start   {few_shot_error(model, plants, test, INNER_STEPS):.4f}")
    return model


if __name__ == "__main__":
    model = main()
