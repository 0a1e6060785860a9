import torch
net = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(net.weight)
ema = [p.detach() for p in net.parameters()]  # role: shared_here
with torch.no_grad():
    net.weight.add_(5)  # role: modified_here
assert ema[0].item() == 6.0  # role: observed_here
print("silent", ema[0].item(), "instead of", 1.0)
