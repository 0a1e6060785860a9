"""expect: element-does-not-require-grad

A decorator that was written for evaluation sits on the training step too.
"""

import functools

import torch
from torch import nn


def measured(function):
    @functools.wraps(function)
    def wrapper(self, *args):
        with torch.no_grad():  # role: grad_mode_off_here
            result = function(self, *args)
        self.calls[function.__name__] = self.calls.get(function.__name__, 0) + 1
        return result

    return wrapper


class Task:
    def __init__(self):
        self.model = nn.Linear(4, 1)  # role: leaf_made_here
        self.calls = {}

    @measured
    def evaluate(self, x, y):
        return (self.model(x) - y).abs().max()

    def training_loss(self, x, y):
        error = self.model(x) - y  # role: graph_cut_here
        return error.pow(2).mean()

    def train(self, batches):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in batches:
            optimizer.zero_grad()
            self.training_loss(x, y).backward()  # role: needed_here
            optimizer.step()


torch.manual_seed(29)
task = Task()
batches = [(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(2)]
print(task.evaluate(*batches[0]) > 0)
task.train(batches)
