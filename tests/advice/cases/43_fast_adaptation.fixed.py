"""Meta-learning of an initialisation for sine regression."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(1, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x)))


class MetaLearner:
    def __init__(self, inner_lr=0.05, outer_lr=1e-2):
        self.model = Regressor()
        self.inner_lr = inner_lr
        self.outer = torch.optim.Adam(self.model.parameters(), lr=outer_lr)

    def inner_update(self, x, y):
        start = dict(self.model.named_parameters())
        loss = F.mse_loss(self.model(x), y)
        grads = torch.autograd.grad(loss, list(start.values()), create_graph=True)
        return {name: param - self.inner_lr * grad for (name, param), grad in zip(start.items(), grads)}

    def meta_step(self, tasks):
        meta_loss = torch.zeros(())
        for support, query in tasks:
            adapted = self.inner_update(*support)
            meta_loss = meta_loss + F.mse_loss(torch.func.functional_call(self.model, adapted, (query[0],)), query[1])
        meta_loss = meta_loss / len(tasks)
        self.outer.zero_grad()
        meta_loss.backward()
        self.outer.step()
        return meta_loss.item()


def sine_task():
    amp, phase = 0.5 + torch.rand(1), 3.0 * torch.rand(1)
    sets = []
    for _ in range(2):
        x = 6 * torch.rand(10, 1) - 3
        sets.append((x, amp * torch.sin(x + phase)))
    return sets


if __name__ == "__main__":
    torch.manual_seed(42)
    learner = MetaLearner()
    for it in range(3):
        print(it, learner.meta_step([sine_task() for _ in range(3)]))
