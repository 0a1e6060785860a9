# each loss has its backward, and the first one's gradient is cleared
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
for step in range(4):
    out = net(torch.randn(8, 4))
    opt.zero_grad()
    for part in (out[:, 0].square().mean(), out[:, 1].abs().mean()):
        part.backward(retain_graph=True)  # role: needed_here
    opt.step()  # role: rejected_here
