"""Multi-task surrogate for a stirred reactor: five outputs, one head each, with partly missing lab values.

The Trainer accumulates gradients over micro-batches and weighs tasks by running loss size.
"""
import math

import torch
import torch.nn as nn

TASKS = ["conversion", "yield", "heat", "viscosity", "purity"]
MEAN = torch.tensor([0.557, 0.407, 0.307, 0.759, 0.675])  # of a long earlier campaign
STD = torch.tensor([0.244, 0.176, 0.333, 0.278, 0.176])


def simulate(n, gen):
    """Temperature, residence time, feed ratio, stirring and catalyst age, each in [0, 1]."""
    u = torch.rand(n, 5, generator=gen)
    temp, tau, ratio, stir, age = u.unbind(1)
    k = torch.exp(2 * temp - 1) * (1 - 0.6 * age)
    conversion = 1 - torch.exp(-k * (0.3 + 2 * tau))
    selectivity = torch.exp(-1.5 * (temp - 0.4) ** 2) * (0.6 + 0.4 * torch.sin(math.pi * ratio))
    y = torch.stack([
        conversion, conversion * selectivity, conversion * (0.5 + ratio) - 0.5 * stir,
        0.4 + (1 - temp) * (1 + conversion) * 0.7 - 0.3 * stir, selectivity - 0.3 * age * temp,
    ], 1)
    return u, (y - MEAN) / STD


class Surrogate(nn.Module):
    def __init__(self, inputs, tasks, hidden=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleDict({
            task: nn.Sequential(nn.Linear(hidden, 16), nn.SiLU(), nn.Linear(16, 1)) for task in tasks
        })

    def forward(self, x):
        h = self.trunk(x)
        outputs = torch.stack([head(h) for head in self.heads.values()])
        return outputs.view(len(x), len(self.heads))


class TaskBalancer:
    """Weights inversely proportional to a running mean of each task's loss (fourfold at most), averaging one."""

    def __init__(self, tasks, decay=0.95):
        self.running = torch.ones(tasks)
        self.decay = decay

    def __call__(self, losses):
        self.running.lerp_(losses.detach(), 1 - self.decay)
        weights = 1 / self.running.clamp(min=0.25)
        return (weights / weights.mean() * losses).mean()


class Trainer:
    def __init__(self, model, epochs, micro_batch=32, accumulate=2, lr=1e-2):
        self.model, self.epochs = model, epochs
        self.micro_batch, self.accumulate = micro_batch, accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-4)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.balance = TaskBalancer(len(TASKS))

    @staticmethod
    def task_losses(pred, target, known):
        error = (pred - target).square() * known
        return error.sum(0) / known.sum(0).clamp(min=1)

    def fit(self, x, y, known):
        size = self.micro_batch * self.accumulate
        for epoch in range(self.epochs):
            total = 0.0
            for step_idx in torch.randperm(len(x)).split(size):
                self.optimizer.zero_grad()
                for idx in step_idx.split(self.micro_batch):
                    losses = self.task_losses(self.model(x[idx]), y[idx], known[idx])
                    loss = self.balance(losses) * (len(idx) / len(step_idx))
                    loss.backward()
                    total += losses.mean().item() * len(idx)
                nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
                self.optimizer.step()
            self.schedule.step()
            if epoch % 5 == 4:
                print(f"epoch {epoch + 1:2d}  lr {self.schedule.get_last_lr()[0]:.5f}  loss {total / len(x):.4f}")

    @torch.no_grad()
    def evaluate(self, x, y):
        return (self.model(x) - y).square().mean(0)


torch.manual_seed(0)
gen = torch.Generator().manual_seed(21)
x, y = simulate(1536, gen)
known = (torch.rand(y.shape, generator=gen) < 0.8).float()
x_test, y_test = simulate(512, gen)

trainer = Trainer(Surrogate(5, TASKS), epochs=20)
trainer.fit(x, y, known)
scores = trainer.evaluate(x_test, y_test)
print("test mse:", {task: round(s.item(), 4) for task, s in zip(TASKS, scores)})
