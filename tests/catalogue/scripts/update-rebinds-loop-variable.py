import torch
net = torch.nn.Linear(1, 1, bias=False)  # role: leaf_made_here
torch.nn.init.ones_(net.weight)
net(torch.ones(1, 1)).sum().backward()
with torch.no_grad():
    for p in net.parameters():
        p = p - 0.1 * p.grad  # role: replaced_here
assert net.weight.item() == 1.0  # role: observed_here
print("silent", net.weight.item(), "instead of", 0.9)
