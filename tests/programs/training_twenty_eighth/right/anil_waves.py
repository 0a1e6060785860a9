"""Meta-learning of damped waves: shared body, head adapted in the inner loop with learned step sizes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

TASKS_PER_STEP = 6


class WaveNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return self.head(self.body(x))


class HeadAdaptation(nn.Module):
    """Inner loop on the head only; one positive step size per head tensor and inner step."""

    def __init__(self, net, steps=3, start=0.05):
        super().__init__()
        self.net = net
        self.steps = steps
        self.log_rates = nn.ParameterDict(
            {name: nn.Parameter(torch.full((steps,), math.log(start))) for name, _ in net.head.named_parameters()}
        )

    def forward(self, x, y, query, second_order=True):
        with torch.enable_grad():
            features = self.net.body(x)
            fast = dict(self.net.head.named_parameters())
            for k in range(self.steps):
                loss = F.mse_loss(functional_call(self.net.head, fast, (features,)), y)
                grads = torch.autograd.grad(loss, list(fast.values()), create_graph=second_order, retain_graph=True)
                fast = {
                    name: value - self.log_rates[name][k].exp() * grad
                    for (name, value), grad in zip(fast.items(), grads)
                }
        return functional_call(self.net.head, fast, (self.net.body(query),))


class WaveTask:
    def __init__(self):
        self.frequency = 1.5 + 1.5 * torch.rand(())
        self.phase = 2 * math.pi * torch.rand(())
        self.decay = 0.5 * torch.rand(())

    def sample(self, count):
        x = 4.0 * torch.rand(count, 1) - 2.0
        y = torch.exp(-self.decay * x.abs()) * torch.sin(self.frequency * x + self.phase)
        return x, y


def evaluate(learner, tasks, shots=12):
    errors = []
    for task in tasks:
        x, y = task.sample(shots)
        query, target = task.sample(64)
        with torch.no_grad():
            errors.append(F.mse_loss(learner(x, y, query, second_order=False), target).item())
    return sum(errors) / len(errors)


def main(steps=160, first_order_steps=40):
    torch.manual_seed(29)
    held_out = [WaveTask() for _ in range(20)]
    learner = HeadAdaptation(WaveNet())
    optimizer = torch.optim.Adam(
        [
            {"params": learner.net.parameters(), "lr": 4e-3},
            {"params": learner.log_rates.parameters(), "lr": 2e-2},
        ]
    )
    start_error = evaluate(learner, held_out)
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(TASKS_PER_STEP):
            task = WaveTask()
            x, y = task.sample(12)
            query, target = task.sample(24)
            # derivative-order annealing: cheap meta-gradients at first, exact ones later
            predicted = learner(x, y, query, second_order=step >= first_order_steps)
            loss = F.mse_loss(predicted, target) / TASKS_PER_STEP
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(learner.parameters(), 5.0)
        optimizer.step()
        if step % 40 == 39:
            print(f"meta step {step + 1:4d}  query mse {total:.4f}")
    end_error = evaluate(learner, held_out)
    rates = {name: [round(r, 3) for r in value.detach().exp().tolist()] for name, value in learner.log_rates.items()}
    print(f"held-out query mse {start_error:.4f} -> {end_error:.4f}")
    print("inner step sizes:", rates)
    return learner, start_error, end_error


if __name__ == "__main__":
    meta_learner, error_start, error_end = main()
