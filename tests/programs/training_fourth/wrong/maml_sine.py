"""MAML on sine regression: learn an initialisation that fits a new sine from ten points in a few gradient steps."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


class SineTasks:
    def __init__(self, shots=10):
        self.shots = shots

    def sample(self):
        amplitude = torch.empty(1).uniform_(0.5, 3.0)
        phase = torch.empty(1).uniform_(0.0, math.pi)
        x = torch.empty(2 * self.shots, 1).uniform_(-4.0, 4.0)
        y = amplitude * torch.sin(x + phase)
        return x[: self.shots], y[: self.shots], x[self.shots :], y[self.shots :]


def make_model():
    return nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


class MAML:
    def __init__(self, model, inner_lr=0.03, inner_steps=3, meta_lr=3e-3):
        self.model = model
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.meta_opt = torch.optim.Adam(self.model.parameters(), lr=meta_lr)

    def adapt(self, x, y):
        """Clone the current initialisation and fit the clone to the support set."""
        learner = copy.deepcopy(self.model)
        inner_opt = torch.optim.SGD(learner.parameters(), lr=self.inner_lr)
        for _ in range(self.inner_steps):
            inner_opt.zero_grad()
            F.mse_loss(learner(x), y).backward()
            inner_opt.step()
        learner.zero_grad()
        return learner

    def meta_step(self, tasks):
        self.meta_opt.zero_grad()
        meta_loss = 0.0
        for xs, ys, xq, yq in tasks:
            learner = self.adapt(xs, ys)
            meta_loss = meta_loss + F.mse_loss(learner(xq), yq)
        meta_loss = meta_loss / len(tasks)
        meta_loss.backward()
        self.meta_opt.step()
        return meta_loss.item()

    def evaluate(self, tasks):
        losses = []
        for xs, ys, xq, yq in tasks:
            learner = self.adapt(xs, ys)
            with torch.no_grad():
                losses.append(F.mse_loss(learner(xq), yq).item())
        return sum(losses) / len(losses)


def main():
    source = SineTasks()
    held_out = [source.sample() for _ in range(30)]
    model = make_model()
    initial = [p.detach().clone() for p in model.parameters()]
    maml = MAML(model)
    print(f"before meta-training: query loss {maml.evaluate(held_out):.3f}")
    history = []
    for iteration in range(100):
        history.append(maml.meta_step([source.sample() for _ in range(4)]))
        if (iteration + 1) % 25 == 0:
            print(f"iteration {iteration + 1}: meta loss {sum(history[-25:]) / 25:.3f}")
    final = maml.evaluate(held_out)
    print(f"after meta-training: query loss {final:.3f}")
    return final


if __name__ == "__main__":
    main()
