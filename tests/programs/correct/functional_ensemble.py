"""An ensemble trained at once: stacked states, `vmap` over members, gradients by `torch.func.grad_and_value`."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(4)
members = [nn.Sequential(nn.Linear(3, 12), nn.GELU(), nn.Linear(12, 1)) for _ in range(5)]
params, buffers = stack_module_state(members)
params = {name: value.detach() for name, value in params.items()}
base = copy.deepcopy(members[0]).to("meta")
x = torch.randn(64, 3)
y = x.prod(1, keepdim=True)


def loss_of(params, buffers, x, y):
    return nn.functional.mse_loss(functional_call(base, (params, buffers), (x,)), y)


velocity = {name: torch.zeros_like(value) for name, value in params.items()}
curve = []
for step in range(20):
    draws = torch.randint(64, (5, 32))
    gradients, losses = vmap(grad_and_value(loss_of), in_dims=(0, 0, 0, 0))(params, buffers, x[draws], y[draws])
    for name in params:
        velocity[name] = 0.9 * velocity[name] + gradients[name]
        params[name] = params[name] - 0.05 * velocity[name]
    curve.append(losses)
curve = torch.stack(curve)
spread = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(params, buffers).std(0)
print(curve.shape, (curve[-1] < curve[0]).float().mean().item() >= 0, spread.mean().item() > 0)
