import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


def sample_task(points=20):
    slope, kink = torch.randn(2)
    x = torch.rand(points, 1) * 4 - 2
    y = slope * (x - kink).abs() + 0.3 * x
    return (x[:10], y[:10]), (x[10:], y[10:])


class FOMAML:
    def __init__(self, model, inner_lr=0.05, inner_steps=3, outer_lr=3e-3):
        self.model = model
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.outer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def adapted(self, support):
        learner = copy.deepcopy(self.model)
        inner = torch.optim.SGD(learner.parameters(), lr=self.inner_lr)
        for _ in range(self.inner_steps):
            loss = F.mse_loss(learner(support[0]), support[1])
            inner.zero_grad()
            loss.backward()
            inner.step()
        return learner

    def query_gradients(self, task):
        support, query = task
        learner = self.adapted(support)
        loss = F.mse_loss(learner(query[0]), query[1])
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        return loss.item(), grads

    def meta_step(self, tasks):
        self.outer.zero_grad()
        losses = []
        for task in tasks:
            loss, grads = self.query_gradients(task)
            losses.append(loss)
            for p, g in zip(self.model.parameters(), grads):
                p.grad = g / len(tasks) if p.grad is None else p.grad + g / len(tasks)
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.outer.step()
        return sum(losses) / len(losses)


def main(steps=40):
    torch.manual_seed(0)
    meta = FOMAML(Regressor())
    for step in range(steps):
        loss = meta.meta_step([sample_task() for _ in range(4)])
        if step % 10 == 0:
            print(f"meta step {step} query loss {loss:.4f}")
    return meta


if __name__ == "__main__":
    meta = main()
