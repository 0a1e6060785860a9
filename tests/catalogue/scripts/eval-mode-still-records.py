import torch
net = torch.nn.Linear(2, 1)
net.eval()  # role: mode_entered_here
out = net(torch.ones(1, 2))  # role: graph_built_here
assert out.requires_grad and out.grad_fn is not None  # role: observed_here
print("silent", out.requires_grad)
