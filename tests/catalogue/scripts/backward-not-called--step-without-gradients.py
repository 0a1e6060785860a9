import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.Adam(net.parameters())
before = net.weight.detach().clone()
opt.step()  # role: rejected_here
assert torch.equal(net.weight, before)  # role: observed_here
print("silent")
