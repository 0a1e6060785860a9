"""First-order MAML on a family of travelling puffs: one task = one release with its own position, width and strength.
After meta-training, a few gradient steps on ten sensors should be enough to describe a new release."""
import argparse
import copy

import torch
import torch.nn.functional as F
from torch import nn


class PuffTask:
    def __init__(self, gen):
        u = torch.rand(4, generator=gen)
        self.centre = -1.5 + 3.0 * u[0]
        self.width = 0.4 + 0.4 * u[1]
        self.strength = 0.5 + 1.5 * u[2]
        self.sign = 1.0 if u[3] < 0.5 else -1.0
        self.gen = gen

    def sample(self, n):
        x = -3 + 6 * torch.rand(n, 1, generator=self.gen)
        y = self.sign * self.strength * torch.exp(-((x - self.centre) / self.width) ** 2 / 2)
        return x, y


def make_net(width):
    return nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def adapt(net, x, y, steps, lr):
    """A copy of `net`, moved by a few plain gradient steps on the support set."""
    learner = copy.deepcopy(net)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        inner.zero_grad()
        F.mse_loss(learner(x), y).backward()
        inner.step()
    inner.zero_grad()
    return learner


class MetaTrainer:
    def __init__(self, args):
        self.args = args
        self.gen = torch.Generator().manual_seed(args.seed)
        self.net = make_net(args.width)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.meta_lr)

    def tasks(self, n):
        return [PuffTask(self.gen) for _ in range(n)]

    def step(self, tasks):
        a = self.args
        self.opt.zero_grad()
        total = 0.0
        for task in tasks:
            learner = adapt(self.net, *task.sample(a.shots), a.inner_steps, a.inner_lr)
            x, y = task.sample(a.queries)
            query_loss = F.mse_loss(learner(x), y) / len(tasks)
            query_loss.backward()
            # first order: the gradient at the adapted weights is applied to the initial ones
            for p, q in zip(self.net.parameters(), learner.parameters()):
                p.grad = q.grad.clone()
            total += query_loss.item()
        nn.utils.clip_grad_norm_(self.net.parameters(), 10.0)
        self.opt.step()
        return total

    def validate(self, tasks):
        a = self.args
        loss = 0.0
        for task in tasks:
            learner = adapt(self.net, *task.sample(a.shots), 2 * a.inner_steps, a.inner_lr)
            with torch.no_grad():
                x, y = task.sample(200)
                loss += F.mse_loss(learner(x), y).item()
        return loss / len(tasks)


def main(args):
    torch.manual_seed(args.seed)
    trainer = MetaTrainer(args)
    held_out = trainer.tasks(60)
    running = None
    for it in range(1, args.iterations + 1):
        loss = trainer.step(trainer.tasks(args.meta_batch))
        running = loss if running is None else 0.95 * running + 0.05 * loss
        if it % (args.iterations // 5) == 0:
            print(f"iteration {it:4d}  query loss {running:.4f}  held-out {trainer.validate(held_out):.4f}")
    return trainer, trainer.validate(held_out)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--width", type=int, default=40)
    ap.add_argument("--shots", type=int, default=10)
    ap.add_argument("--queries", type=int, default=20)
    ap.add_argument("--inner-steps", type=int, default=3)
    ap.add_argument("--inner-lr", type=float, default=0.05)
    ap.add_argument("--meta-lr", type=float, default=1e-3)
    ap.add_argument("--meta-batch", type=int, default=6)
    ap.add_argument("--iterations", type=int, default=250)
    ap.add_argument("--seed", type=int, default=5)
    trainer, score = main(ap.parse_args([]))
