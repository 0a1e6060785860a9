import copy, torch
net = torch.nn.Linear(1, 1, bias=False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
net = copy.deepcopy(net)  # role: replaced_here
before = net.weight.detach().clone()
net(torch.ones(1, 1)).sum().backward()
opt.step()  # role: needed_here
assert torch.equal(net.weight, before)  # role: observed_here
print("silent")
