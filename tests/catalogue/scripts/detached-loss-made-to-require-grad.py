import torch
net = torch.nn.Linear(2, 1)
out = net(torch.ones(1, 2)).detach()  # role: graph_cut_here
loss = out.sum().requires_grad_()  # role: replaced_here
loss.backward()  # role: needed_here
assert net.weight.grad is None and loss.grad.item() == 1.0  # role: observed_here
print("silent", net.weight.grad)
