import torch
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
net[1] = torch.nn.Linear(2, 3)  # role: replaced_here
before = net[1].weight.detach().clone()
net(torch.ones(1, 2)).sum().backward()
opt.step()  # role: needed_here
assert torch.equal(net[1].weight, before)  # role: observed_here
print("silent")
