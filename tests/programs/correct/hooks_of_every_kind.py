"""Hooks of every kind and custom functions, used as they are meant to be."""
import functools
import torch
from torch import nn
from torch.autograd.function import once_differentiable

torch.manual_seed(0)
norms = []


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, low, high):
        ctx.save_for_backward(value)
        ctx.bounds = low, high
        return value.clamp(low, high)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        low, high = ctx.bounds
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return gradient * ((value >= low) & (value <= high)), None, None


def shrink(factor, gradient):
    if gradient.abs().max() < 1e-6:
        return None
    return gradient * factor


def watch(module, grad_input, grad_output):
    norms.append(grad_output[0].norm().item())


class Stats:
    def __call__(self, module, inputs, output):
        norms.append(output.detach().mean().item())


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
model[2].register_full_backward_hook(watch)
model[0].register_forward_hook(Stats())
for parameter in model.parameters():
    parameter.register_hook(functools.partial(shrink, 0.5))
    parameter.register_post_accumulate_grad_hook(lambda parameter: norms.append(parameter.grad.norm().item()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    batch = torch.randn(6, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.half(), lambda kept: kept.float()):
        hidden = Clamp.apply(model(batch), -1.0, 1.0)
    hidden.grad_fn.register_prehook(lambda gradients: None)
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert len(norms) == 3 * (1 + 1 + 4)
assert torch.autograd.gradcheck(Clamp.apply, (torch.rand(3, dtype=torch.float64, requires_grad=True), -2.0, 2.0))
