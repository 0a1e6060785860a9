import copy, torch
net = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(net.weight)
target = copy.copy(net)  # role: shared_here
with torch.no_grad():
    net.weight.add_(5)  # role: modified_here
assert target.weight.item() == 6.0  # role: observed_here
print("silent", target.weight.item(), "instead of", 1.0)
