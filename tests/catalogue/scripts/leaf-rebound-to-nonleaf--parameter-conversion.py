import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        raw = torch.nn.Parameter(torch.ones(2))  # role: leaf_made_here
        self.w = raw.to(torch.float64)  # role: nonleaf_made_here

net = Net()
net.w.sum().backward()  # role: needed_here
names = [n for n, _ in net.named_parameters()]
assert names == []  # role: observed_here
print("silent", names, "instead of ['w']")
