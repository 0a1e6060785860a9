import torch
net = torch.nn.Linear(1, 1, bias=False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
net.weight = torch.nn.Parameter(torch.ones(1, 1))  # role: replaced_here
net(torch.ones(1, 1)).sum().backward()
opt.step()  # role: needed_here
assert net.weight.item() == 1.0  # role: observed_here
print("silent", net.weight.item(), "instead of", 0.9)
