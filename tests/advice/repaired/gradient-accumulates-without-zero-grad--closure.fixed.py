"""A closure for LBFGS that never clears what the evaluation before it left."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)
x, y = torch.randn(20, 3), torch.randn(20, 1)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()  # role: accumulated_here
    return loss


for step in range(3):
    optimizer.step(closure)  # role: needed_here
print("done")
