"""First-order MAML (Finn et al. 2017) in small: few-shot regression of sine waves, with a deep copy per task."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
INNER_LR, INNER_STEPS, SHOTS, TASKS_PER_STEP, META_STEPS = 0.02, 3, 10, 5, 240


class Wave:
    def __init__(self):
        self.amplitude = 0.5 + 2.5 * torch.rand(1)
        self.phase = math.pi * torch.rand(1)

    def draw(self, n):
        x = 10 * torch.rand(n, 1) - 5
        return x, self.amplitude * torch.sin(x + self.phase)


def make_net():
    return nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))


def adapt(meta_net, x, y, steps):
    """A few steps of plain gradient descent on a copy; the shared start itself is left alone."""
    learner = copy.deepcopy(meta_net)
    for p in learner.parameters():
        p.grad = None
    inner = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        inner.zero_grad()
        F.mse_loss(learner(x), y).backward()
        inner.step()
    return learner


def meta_gradient(meta_net, wave):
    """Gradient of the query loss at the adapted weights, used as the gradient of the start (first order)."""
    support, query = wave.draw(SHOTS), wave.draw(SHOTS)
    learner = adapt(meta_net, *support, INNER_STEPS)
    loss = F.mse_loss(learner(query[0]), query[1])
    grads = torch.autograd.grad(loss, list(learner.parameters()))
    return [g.detach() for g in grads], loss.item()


def evaluate(meta_net, waves, steps):
    total = 0.0
    for wave, (support, query) in waves:
        learner = adapt(meta_net, *support, steps)
        with torch.no_grad():
            total += F.mse_loss(learner(query[0]), query[1]).item()
    return total / len(waves)


def main():
    meta_net = make_net()
    start = copy.deepcopy(meta_net)
    test = []
    for _ in range(60):
        wave = Wave()
        test.append((wave, (wave.draw(SHOTS), wave.draw(100))))
    meta_opt = torch.optim.Adam(meta_net.parameters(), lr=3e-3)
    for step in range(META_STEPS):
        meta_opt.zero_grad(set_to_none=True)
        mean_loss = 0.0
        for _ in range(TASKS_PER_STEP):
            grads, loss = meta_gradient(meta_net, Wave())
            mean_loss += loss / TASKS_PER_STEP
            for p, g in zip(meta_net.parameters(), grads):
                share = g / TASKS_PER_STEP
                p.grad = share if p.grad is None else p.grad + share
        meta_opt.step()
        if step % 60 == 0:
            print(f"meta step {step:4d}  query loss {mean_loss:.3f}")
    for steps in (0, 3, 10):
        print(f"{steps:2d} inner steps: random start {evaluate(start, test, steps):.3f}, "
              f"learned start {evaluate(meta_net, test, steps):.3f}")
    return meta_net


if __name__ == "__main__":
    meta_net = main()
