"""A hook of all modules keeps the gradients of linear layers small; a checking run has compiled the loss before."""

import torch
from torch import nn
from torch.nn.modules.module import register_module_full_backward_hook

torch.manual_seed(5)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
data, target = torch.randn(10, 4), torch.randn(10, 1)


def loss_of(x, y):
    return (model(x) - y).abs().mean()


fast = torch.compile(loss_of, backend="eager")  # role: compiled_here
fast(data, target).backward()  # role: called_here
model.zero_grad()


def shrink(module, grad_input, grad_output):
    if isinstance(module, nn.Linear):
        return tuple(None if each is None else each * 0.1 for each in grad_input)


register_module_full_backward_hook(shrink)  # role: hook_registered_here
fast(data, target).backward()  # role: needed_here
