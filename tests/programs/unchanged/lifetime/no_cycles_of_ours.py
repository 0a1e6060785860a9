import gc
import torch

def train():
    x = torch.ones(2, requires_grad=True)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        try:
            torch.ones(2) @ torch.ones(3)
        except RuntimeError:
            pass
        try:
            torch.ones(2).backward()
        except RuntimeError:
            pass
        with torch.no_grad():
            x[0] = 3
        torch.nn.Parameter(x.detach())
        x.detach().numpy()

train()  # what torch imports on first use
print(gc.collect() >= 0)
gc.set_debug(gc.DEBUG_SAVEALL)
train()
gc.collect()
print(sorted(type(o).__name__ for o in gc.garbage))
gc.set_debug(0)
gc.garbage.clear()
