import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(1, 1)
        self.scale = torch.ones(1, requires_grad=True)  # role: leaf_made_here

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
(net.fc(torch.ones(1, 1)) * net.scale).sum().backward()
opt.step()  # role: needed_here
assert net.scale.grad is not None and net.scale.item() == 1.0  # role: observed_here
print("silent", net.scale.item())
