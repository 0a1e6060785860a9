"""First-order MAML on sinusoid regression: clones adapt, their last gradients move the shared initialisation."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
INNER_LR, INNER_STEPS, META_BATCH, SHOTS, META_ITERS = 0.02, 3, 4, 10, 220


class Task:
    def __init__(self):
        self.amplitude = 0.5 + 3.0 * torch.rand(())
        self.phase = math.pi * torch.rand(())

    def batch(self, n):
        x = 10.0 * torch.rand(n, 1) - 5.0
        return x, self.amplitude * torch.sin(x + self.phase)


def make_net():
    return nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))


def adapt(meta, x, y, steps):
    """Plain SGD on a private copy; the initialisation itself is not touched."""
    learner = copy.deepcopy(meta)
    inner = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        inner.zero_grad()
        F.mse_loss(learner(x), y).backward()
        inner.step()
    learner.zero_grad()
    return learner


def accumulate(meta, learner, scale):
    for p, q in zip(meta.parameters(), learner.parameters()):
        if p.grad is None:
            p.grad = q.grad.mul(scale)
        else:
            p.grad.add_(q.grad, alpha=scale)


def evaluate(net, n_tasks=25):
    state = torch.get_rng_state()
    torch.manual_seed(999)
    before, after = 0.0, 0.0
    for _ in range(n_tasks):
        task = Task()
        x, y = task.batch(SHOTS)
        xq, yq = task.batch(100)
        learner = adapt(net, x, y, 10)
        with torch.no_grad():
            before += F.mse_loss(net(xq), yq).item() / n_tasks
            after += F.mse_loss(learner(xq), yq).item() / n_tasks
    torch.set_rng_state(state)
    return before, after


meta = make_net()
outer = torch.optim.Adam(meta.parameters(), lr=3e-3)
start = evaluate(meta)
print(f"untrained: before adaptation {start[0]:.3f}, after ten steps {start[1]:.3f}")

running = 0.0
for it in range(1, META_ITERS + 1):
    outer.zero_grad(set_to_none=True)
    meta_loss = 0.0
    for _ in range(META_BATCH):
        task = Task()
        learner = adapt(meta, *task.batch(SHOTS), INNER_STEPS)
        xq, yq = task.batch(SHOTS)
        query = F.mse_loss(learner(xq), yq)
        query.backward()
        accumulate(meta, learner, 1.0 / META_BATCH)
        meta_loss += query.item() / META_BATCH
    nn.utils.clip_grad_norm_(meta.parameters(), 10.0)
    outer.step()
    running = 0.95 * running + 0.05 * meta_loss
    if it % 55 == 0:
        print(f"iteration {it}: query loss {running / (1 - 0.95 ** it):.3f}")

end = evaluate(meta)
print(f"trained: before adaptation {end[0]:.3f}, after ten steps {end[1]:.3f}")
