import torch
net = torch.nn.Linear(1, 1, bias=False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(1, 1)).sum().backward()  # role: accumulated_here
net.weight.requires_grad_(False)  # role: flag_changed_here
before = net.weight.clone()
opt.step()  # role: needed_here
assert not torch.equal(net.weight, before)  # role: observed_here
print("silent", before.item(), "to", net.weight.item())
