"""Reptile on dose-response curves: a start point from which a few steps fit a new patient's curve.

The outer optimizer is Adam; it gets the difference between the start point and the adapted weights as the gradient.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 13
INNER_STEPS = 8
INNER_LR = 0.05
SHOTS = 10
META_BATCH = 3
META_STEPS = 200
torch.manual_seed(SEED)


class Patient:
    """A sigmoid response with the patient's own threshold, height and slope; log doses between -3 and 3."""

    def __init__(self, gen):
        u = torch.rand(3, generator=gen)
        self.threshold, self.height, self.slope = 3 * u[0] - 1.5, 1 + 2 * u[1], 1.5 + 3 * u[2]
        self.gen = gen

    def sample(self, n):
        dose = 6 * torch.rand(n, 1, generator=self.gen) - 3
        clean = self.height * torch.sigmoid(self.slope * (dose - self.threshold))
        return dose, clean + 0.05 * torch.randn(n, 1, generator=self.gen)


class Response(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, dose):
        return self.net(dose)


def adapt(model, dose, response, steps=INNER_STEPS):
    """A copy of the model after a few steps of SGD; the given model stays as it is."""
    fast = copy.deepcopy(model)
    opt = torch.optim.SGD(fast.parameters(), lr=INNER_LR)
    for _ in range(steps):
        opt.zero_grad()
        F.mse_loss(fast(dose), response).backward()
        opt.step()
    return fast


def outer_step(model, opt, patients):
    opt.zero_grad()
    for patient in patients:
        fast = adapt(model, *patient.sample(SHOTS))
        for slow, new in zip(model.parameters(), fast.parameters()):
            direction = (slow.detach() - new.detach()) / len(patients)
            slow.grad = direction if slow.grad is None else slow.grad + direction
    opt.step()


def score(model, patients, steps):
    """Error on other doses of the same patients after adapting to ten of them."""
    errors = []
    for patient in patients:
        fast = adapt(model, *patient.sample(SHOTS), steps=steps)
        dose, response = patient.sample(100)
        with torch.no_grad():
            errors.append(F.mse_loss(fast(dose), response).item())
    return sum(errors) / len(errors)


def main():
    gen = torch.Generator().manual_seed(SEED)
    held_out = [Patient(gen) for _ in range(40)]
    model = Response()
    untrained = copy.deepcopy(model)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.LinearLR(opt, start_factor=1.0, end_factor=0.1, total_iters=META_STEPS)
    for step in range(META_STEPS):
        outer_step(model, opt, [Patient(gen) for _ in range(META_BATCH)])
        sched.step()
        if (step + 1) % 100 == 0:
            print(f"meta step {step + 1}: error after adapting {score(model, held_out, INNER_STEPS):.4f}")
    first = score(untrained, held_out, INNER_STEPS)
    last = score(model, held_out, INNER_STEPS)
    print(f"random start {first:.4f}, learned start {last:.4f}, learned start without adapting {score(model, held_out, 0):.4f}")
    return model


if __name__ == "__main__":
    main()
