"""First-order MAML (Finn et al., 2017; Nichol et al., 2018) for dose-response curves of new patients.

A patient is a curve with a personal baseline, ceiling, slope and half-effect dose.  The initial weights are such that
a few gradient steps on eight measurements predict the rest of the curve.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(13)
torch.set_num_threads(1)

SHOTS, QUERIES, PATIENTS = 8, 16, 6
INNER_STEPS, INNER_LR = 4, 0.02


def patient():
    base, top = 0.3 * torch.randn(1), 1.0 + torch.rand(1) * 2
    slope, half = 2 + 3 * torch.rand(1), torch.rand(1) * 2 - 1
    sign = 1.0 if torch.rand(1) < 0.5 else -1.0

    def measure(n):
        dose = torch.rand(n, 1) * 4 - 2
        return dose, base + sign * top * torch.sigmoid(slope * (dose - half)) + 0.02 * torch.randn(n, 1)

    return measure


def network():
    return nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def adapt(learner, dose, effect, steps=INNER_STEPS):
    inner = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        loss = F.mse_loss(learner(dose), effect)
        inner.zero_grad()
        loss.backward()
        inner.step()
    inner.zero_grad()
    return learner


def meta_step(initial, optimizer):
    """Sums the query gradients at the adapted weights and applies them to the initial ones."""
    optimizer.zero_grad(set_to_none=False)
    total = 0.0
    for _ in range(PATIENTS):
        measure = patient()
        learner = adapt(copy.deepcopy(initial), *measure(SHOTS))
        dose, effect = measure(QUERIES)
        loss = F.mse_loss(learner(dose), effect)
        loss.backward()
        for p, q in zip(initial.parameters(), learner.parameters()):
            p.grad.add_(q.grad, alpha=1.0 / PATIENTS)
        total += loss.item()
    nn.utils.clip_grad_norm_(initial.parameters(), 1.0)
    optimizer.step()
    return total / PATIENTS


def evaluate(initial, patients=100):
    """The same patients and measurements each time, without touching the random numbers of training."""
    before = after = 0.0
    with torch.random.fork_rng():
        torch.manual_seed(1000)
        for _ in range(patients):
            measure = patient()
            support, (dose, effect) = measure(SHOTS), measure(50)
            learner = copy.deepcopy(initial)
            with torch.no_grad():
                before += F.mse_loss(learner(dose), effect).item()
            adapt(learner, *support)
            with torch.no_grad():
                after += F.mse_loss(learner(dose), effect).item()
    return before / patients, after / patients


def main():
    initial = network()
    for p in initial.parameters():
        p.grad = torch.zeros_like(p)
    optimizer = torch.optim.Adam(initial.parameters(), lr=3e-3)
    print("untrained: error {:.3f} before and {:.3f} after adaptation".format(*evaluate(initial)))
    running = 0.0
    for step in range(1, 181):
        loss = meta_step(initial, optimizer)
        running = loss if step == 1 else 0.95 * running + 0.05 * loss
        if step % 60 == 0:
            print(f"step {step:4d}  query loss {running:.3f}")
    print("trained: error {:.3f} before and {:.3f} after adaptation".format(*evaluate(initial)))


if __name__ == "__main__":
    main()
