"""From the second epoch on, a backward hook halves what the encoder learns from."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 1)
model = nn.Sequential(encoder, head)
step = torch.compile(model, backend="eager")  # role: compiled_here
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(32, 6), torch.randn(32, 1)


def halve(module, grad_input, grad_output):
    return tuple(None if each is None else each / 2 for each in grad_input)


for epoch in range(3):
    if epoch == 1:
        head.register_full_backward_hook(halve)  # role: hook_registered_here
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(step(data), target)
    loss.backward()  # role: needed_here
    optimizer.step()
print(loss.item())
