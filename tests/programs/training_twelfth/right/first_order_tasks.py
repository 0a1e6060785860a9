"""First-order MAML (Finn et al., 2017) on sine regression, with one learner copy per task."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

META_BATCH = 8
SHOTS, QUERY = 10, 10
INNER_STEPS, INNER_LR = 3, 0.05
META_ITERS = 250


class SineTask:
    def __init__(self):
        self.amp = torch.empty(1).uniform_(0.5, 3.0)
        self.phase = torch.empty(1).uniform_(0.0, math.pi)

    def sample(self, n):
        x = torch.empty(n, 1).uniform_(-4, 4)
        return x, self.amp * torch.sin(x + self.phase)


def build():
    return nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def adapt(net, x, y, steps):
    """Return a copy of the network, trained for a few SGD steps on the support set."""
    learner = copy.deepcopy(net)
    opt = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        loss = F.mse_loss(learner(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return learner


def meta_step(net, meta_opt):
    """The first-order meta gradient is the query gradient at the adapted weights."""
    meta_opt.zero_grad(set_to_none=True)
    total = 0.0
    for _ in range(META_BATCH):
        task = SineTask()
        learner = adapt(net, *task.sample(SHOTS), INNER_STEPS)
        xq, yq = task.sample(QUERY)
        loss = F.mse_loss(learner(xq), yq)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(net.parameters(), grads):
            if p.grad is None:
                p.grad = g / META_BATCH
            else:
                p.grad.add_(g, alpha=1.0 / META_BATCH)
        total += loss.item()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    meta_opt.step()
    return total / META_BATCH


def meta_test(net, n_tasks=50):
    """Query error before and after adaptation on new tasks; the random state is left as it was."""
    before, after = 0.0, 0.0
    with torch.random.fork_rng():
        torch.manual_seed(99)
        for _ in range(n_tasks):
            task = SineTask()
            learner = adapt(net, *task.sample(SHOTS), INNER_STEPS)
            xq, yq = task.sample(50)
            with torch.no_grad():
                before += F.mse_loss(net(xq), yq).item() / n_tasks
                after += F.mse_loss(learner(xq), yq).item() / n_tasks
    return before, after


net = build()
meta_opt = torch.optim.Adam(net.parameters(), lr=2e-3)
print("untrained   before %.3f  after %.3f" % meta_test(net))
running = None
for it in range(META_ITERS):
    loss = meta_step(net, meta_opt)
    running = loss if running is None else 0.95 * running + 0.05 * loss
    if (it + 1) % 50 == 0:
        print(f"iteration {it + 1:4d}  query loss {running:.3f}")
before, after = meta_test(net)
print(f"meta-trained before {before:.3f}  after {after:.3f}")
