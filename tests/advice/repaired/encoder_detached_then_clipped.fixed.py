"""expect: none-grad-attribute

A logger of gradient norms meets an encoder that a detach() keeps out of the backward pass.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 8)  # role: leaf_made_here
        self.decoder = nn.Linear(8, 4)
        self.code = None

    def encode(self, x):
        self.code = torch.relu(self.encoder(x))  # role: graph_cut_here
        return self.code

    def forward(self, x):
        return self.decoder(self.encode(x))


def gradient_norms(model):
    report = {}
    for name, parameter in model.named_parameters():
        report[name] = parameter.grad.norm().item()  # role: needed_here
    return report


torch.manual_seed(39)
model = Model()
x = torch.randn(5, 4)
loss = (model(x) - x).pow(2).mean()
loss.backward()
print(gradient_norms(model))
