"""An optimizer for each parameter that steps as soon as its gradient is complete, during backward."""

import torch
from torch import nn

torch.manual_seed(13)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.05, momentum=0.5) for parameter in model.parameters()}


def step_and_free(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step_and_free)
inputs = torch.randn(10, 4)
for step in range(3):
    loss = (model(inputs) - inputs.mean(1, keepdim=True)).pow(2).mean()
    loss.backward()
    print(step, round(loss.item(), 4))
