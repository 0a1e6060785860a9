import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class MetaSGD(nn.Module):
    def __init__(self, width=32, inner_lr=0.02):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.rates = nn.ParameterDict(
            {self.key(n): nn.Parameter(torch.full_like(p, inner_lr)) for n, p in self.net.named_parameters()}
        )

    @staticmethod
    def key(name):
        return name.replace(".", "_")

    def start_point(self):
        return {n: w.clone().requires_grad_() for n, w in self.net.state_dict().items()}

    def adapt(self, x, y, steps):
        fast = self.start_point()
        for _ in range(steps):
            loss = F.mse_loss(functional_call(self.net, fast, (x,)), y)
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {n: w - self.rates[self.key(n)] * g for (n, w), g in zip(fast.items(), grads)}
        return fast

    def forward(self, task, steps=2):
        (sx, sy), (qx, qy) = task
        fast = self.adapt(sx, sy, steps)
        return F.mse_loss(functional_call(self.net, fast, (qx,)), qy)


def sample_task(shots=8, queries=16):
    amplitude = 0.5 + 2 * torch.rand(1)
    phase = math.pi * torch.rand(1)
    x = 10 * torch.rand(shots + queries, 1) - 5
    y = amplitude * torch.sin(x + phase)
    x = x / 5
    return (x[:shots], y[:shots]), (x[shots:], y[shots:])


class MetaTrainer:
    def __init__(self, learner, lr=2e-3, tasks_per_step=4):
        self.learner = learner
        self.tasks_per_step = tasks_per_step
        self.optimizer = torch.optim.Adam(learner.parameters(), lr=lr)

    def step(self):
        self.optimizer.zero_grad()
        total = 0.0
        for _ in range(self.tasks_per_step):
            loss = self.learner(sample_task()) / self.tasks_per_step
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(self.learner.parameters(), 5.0)
        self.optimizer.step()
        return total


def main(steps=60):
    torch.manual_seed(0)
    trainer = MetaTrainer(MetaSGD())
    for i in range(steps):
        loss = trainer.step()
        if i % 20 == 0:
            print(f"meta step {i} query loss {loss:.4f}")
    return trainer


if __name__ == "__main__":
    trainer = main()
