"""expect: backward-through-freed-graph

A monitor in another file takes gradients of its own before the training step does.
"""

import torch
from _monitor import GradientMonitor
from torch import nn

torch.manual_seed(33)
model = nn.Sequential(nn.Linear(3, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.SmoothL1Loss()
monitor = GradientMonitor(model)


def train_step(x, y, callbacks=()):
    loss = criterion(model(x), y)  # role: graph_built_here
    for callback in callbacks:
        callback(loss)
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
    return loss.item()


x, y = torch.randn(5, 3), torch.randn(5, 1)
train_step(x, y)
train_step(x, y, callbacks=[monitor.look])
