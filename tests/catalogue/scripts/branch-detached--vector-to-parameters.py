import torch
from torch.nn.utils import vector_to_parameters
net = torch.nn.Linear(2, 1, bias=False)
theta = torch.ones(2, requires_grad=True)
vector_to_parameters(theta, net.parameters())  # role: graph_cut_here
net(torch.ones(1, 2)).sum().backward()  # role: needed_here
assert theta.grad is None and net.weight.grad is not None  # role: observed_here
print("silent", theta.grad, "instead of", [1.0, 1.0])
