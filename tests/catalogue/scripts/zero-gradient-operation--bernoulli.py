import torch
torch.manual_seed(0)
p = torch.full((4,), 0.5, requires_grad=True)
loss = torch.bernoulli(p).sum()  # role: graph_built_here
loss.backward()  # role: needed_here
assert p.grad.tolist() == [0.0] * 4  # role: observed_here
print("silent", p.grad.tolist())
