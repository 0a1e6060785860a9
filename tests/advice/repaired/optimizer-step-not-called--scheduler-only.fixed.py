import torch, warnings
warnings.simplefilter("ignore")
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)  # role: optimizer_made_here
sched = torch.optim.lr_scheduler.StepLR(opt, 2)
for step in range(5):
    loss = (net(torch.randn(8, 4)) - 1).square().mean()
    net.zero_grad()  # role: cleared_here
    loss.backward()  # role: needed_here
    opt.step()
    sched.step()
print("done")
