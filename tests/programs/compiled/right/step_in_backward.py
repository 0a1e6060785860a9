"""Each parameter is updated as soon as its gradient is there, by a hook that is registered after compilation."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
fast = torch.compile(model, backend="aot_eager")
data, target = torch.randn(16, 4), torch.randn(16, 1)
print(nn.functional.mse_loss(fast(data), target).item())


def update(parameter):
    with torch.no_grad():
        parameter -= 0.1 * parameter.grad
    parameter.grad = None


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for _ in range(3):
    nn.functional.mse_loss(fast(data), target).backward()
print(nn.functional.mse_loss(fast(data), target).item())
