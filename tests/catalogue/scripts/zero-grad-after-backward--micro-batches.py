import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
used, whole, x = [], [], torch.randn(8, 2)
for part in range(4):
    opt.zero_grad()  # role: cleared_here
    loss = net(x[2 * part : 2 * part + 2]).square().mean() / 2
    whole.append(torch.autograd.grad(loss, net.weight, retain_graph=True)[0])
    loss.backward()  # role: needed_here
    if part % 2:
        used.append(net.weight.detach().clone())
        opt.step()  # role: rejected_here
        used[-1] = (used[-1] - net.weight) / 0.1
assert not torch.allclose(used[0], whole[0] + whole[1])  # role: observed_here
print("silent", used[0].tolist(), "instead of", (whole[0] + whole[1]).tolist())
