import torch
net = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(net.weight)
best = net.state_dict()  # role: shared_here
with torch.no_grad():
    net.weight.add_(5)  # role: modified_here
assert best["weight"].item() == 6.0  # role: observed_here
print("silent", best["weight"].item(), "instead of", 1.0)
