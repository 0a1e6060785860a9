"""First-order meta-learning that rewinds the model after every task."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)


class MetaTrainer:
    def __init__(self, inner_lr=0.02, outer_lr=1e-3):
        self.model = Regressor()
        self.inner_lr = inner_lr
        self.outer = torch.optim.Adam(self.model.parameters(), lr=outer_lr)

    def rewind(self, snapshot):
        self.model.load_state_dict(snapshot)

    def adapt(self, x, y, steps=2):
        inner = torch.optim.SGD(self.model.parameters(), lr=self.inner_lr)
        for _ in range(steps):
            inner.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            inner.step()

    def outer_step(self, tasks):
        snapshot = copy.deepcopy(self.model.state_dict())
        meta_loss = torch.zeros(())
        for support, query in tasks:
            self.adapt(*support)
            adapted = {name: weight.clone() for name, weight in self.model.named_parameters()}
            prediction = torch.func.functional_call(self.model, adapted, (query[0],))
            meta_loss = meta_loss + F.mse_loss(prediction, query[1])
            self.rewind(snapshot)
        self.outer.zero_grad()
        meta_loss.backward()
        self.outer.step()
        return meta_loss.item() / len(tasks)


def wave_task():
    amp, phase = 1 + 2 * torch.rand(1), math.pi * torch.rand(1)
    draw = lambda: (lambda x: (x, amp * torch.sin(x + phase)))(10 * torch.rand(8, 1) - 5)
    return draw(), draw()


if __name__ == "__main__":
    torch.manual_seed(20)
    trainer = MetaTrainer()
    for _ in range(2):
        print(trainer.outer_step([wave_task() for _ in range(3)]))
