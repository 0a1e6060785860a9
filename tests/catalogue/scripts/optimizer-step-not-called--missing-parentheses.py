import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
before = net.weight.detach().clone()
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
for epoch in range(4):
    opt.zero_grad()  # role: cleared_here
    net(torch.ones(3, 2)).square().mean().backward()  # role: needed_here
    opt.step
assert torch.equal(before, net.weight)  # role: observed_here
print("silent")
