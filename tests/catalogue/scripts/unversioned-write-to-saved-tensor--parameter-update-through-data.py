import torch
net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False))
for p in net.parameters():
    torch.nn.init.ones_(p)
loss = net(torch.ones(1, 1)).sum()  # role: saved_here
for p in net.parameters():
    p.data.mul_(10)  # role: modified_here
loss.backward()  # role: needed_here
assert net[0].weight.grad.item() != 1.0  # role: observed_here
print("silent", net[0].weight.grad.item(), "instead of 1.0")
