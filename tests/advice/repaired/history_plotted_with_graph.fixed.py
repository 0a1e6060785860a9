"""expect: numpy-on-requires-grad

Predictions are collected for a plot with their history, and turned into arrays much later.
"""

import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.curves = {"prediction": [], "target": []}

    def add(self, **tensors):
        for name, tensor in tensors.items():
            self.curves[name].append(tensor)

    def arrays(self):
        return {name: [t.numpy() for t in curve] for name, curve in self.curves.items()}  # role: rejected_here


torch.manual_seed(45)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recorder = Recorder()
for _ in range(2):
    x = torch.randn(4, 3)
    y = x.sum(1, keepdim=True)
    prediction = model(x)  # role: graph_built_here
    recorder.add(prediction=prediction.detach(), target=y)
    loss = (prediction - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print({name: len(curve) for name, curve in recorder.arrays().items()})
