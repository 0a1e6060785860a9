import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(2, 1)
        self.hidden = [torch.nn.Linear(2, 2)]  # role: leaf_made_here

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
before = net.hidden[0].weight.detach().clone()
net.out(net.hidden[0](torch.ones(1, 2))).sum().backward()
opt.step()  # role: needed_here
assert torch.equal(net.hidden[0].weight, before)  # role: observed_here
print("silent")
