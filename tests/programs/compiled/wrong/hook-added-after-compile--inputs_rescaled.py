"""A pre-hook rescales the inputs of the second layer after the first epoch, as the statistics say."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(32, 4), torch.randn(32, 1)


@torch.compile(backend="aot_eager")  # role: compiled_here
def loss_of(x, y):
    return (model(x) - y).square().mean()


def epoch():
    optimizer.zero_grad()
    loss = loss_of(data, target)  # role: called_here
    loss.backward()  # role: needed_here
    optimizer.step()


epoch()
spread = model[:2](data).std().item()
model[2].register_forward_pre_hook(lambda module, inputs: (inputs[0] / spread,))  # role: hook_registered_here
epoch()
epoch()
