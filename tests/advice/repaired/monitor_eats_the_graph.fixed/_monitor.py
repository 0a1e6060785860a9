"""Watching gradients while a model trains."""

import torch


class GradientMonitor:
    def __init__(self, model):
        self.parameters = dict(model.named_parameters())
        self.history = []

    def look(self, loss):
        gradients = torch.autograd.grad(loss, list(self.parameters.values()), retain_graph=True)  # role: freed_here
        norms = [gradient.norm().item() for gradient in gradients]
        self.history.append(dict(zip(self.parameters, norms)))
