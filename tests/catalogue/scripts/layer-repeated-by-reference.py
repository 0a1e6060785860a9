import torch
block = torch.nn.Linear(2, 2)
net = torch.nn.Sequential(*[block] * 3)  # role: shared_here
net(torch.ones(1, 2)).sum().backward()
count = len(list(net.parameters()))
assert count == 2  # role: observed_here
print("silent", count, "parameters instead of 6")
