# expect: module-backward-hook-wrong-count
"""A bound method is the backward hook of several layers; of the one with two inputs it returns one gradient only."""
import torch
from torch import nn


class Damper:
    def __init__(self, factor):
        self.factor = factor

    def damp(self, module, grad_input, grad_output):
        return tuple(g * self.factor for g in grad_input)  # role: returned_here


damper = Damper(0.5)
encoder = nn.Linear(3, 4)
mixer = nn.Bilinear(4, 4, 2)
encoder.register_full_backward_hook(damper.damp)
mixer.register_full_backward_hook(damper.damp)  # role: hook_registered_here
hidden = encoder(torch.ones(2, 3, requires_grad=True))
result = mixer(hidden, hidden.tanh())
result.sum().backward()  # role: needed_here
