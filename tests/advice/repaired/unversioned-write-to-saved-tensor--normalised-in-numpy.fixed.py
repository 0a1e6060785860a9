"""Activations are rescaled for a plot, in the memory that autograd saved."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 5)
read = nn.Linear(5, 1)
optimizer = torch.optim.SGD([*net.parameters(), *read.parameters()], lr=0.1)
x = torch.randn(12, 3)
shown = []
for step in range(3):
    hidden = torch.tanh(net(x))  # role: saved_here
    out = read(hidden)  # role: saved_here
    picture = hidden.detach().clone().numpy()
    picture -= picture.min()  # role: modified_here
    picture /= picture.max()  # role: modified_here
    shown.append(float(picture.mean()))
    loss = (out - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
print(len(shown))
