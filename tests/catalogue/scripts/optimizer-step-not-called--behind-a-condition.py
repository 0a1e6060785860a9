import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
before = net.weight.detach().clone()
opt = torch.optim.Adam(net.parameters())  # role: optimizer_made_here
for batch in range(6):
    loss = net(torch.ones(3, 2)).square().mean() / 8
    loss.backward()  # role: needed_here
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if (batch + 1) % 8 == 0:
        opt.step()
        opt.zero_grad()
assert torch.equal(before, net.weight)  # role: observed_here
print("silent")
