import itertools
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(67)


class Melt(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.season = nn.Bilinear(2, 3, width)
        self.out = nn.Linear(width, 1)

    def forward(self, sky, slope):
        return self.out(torch.tanh(self.season(sky, slope))).squeeze(-1)


def annealer(opt, base, gamma):
    def apply(count):
        for group in opt.param_groups:
            group["lr"] = base * gamma ** count
        return opt.param_groups[0]["lr"]
    return apply


def glacier(n=320):
    sky, slope = torch.randn(n, 2), torch.randn(n, 3)
    melt = torch.sin(sky[:, 0]) * slope[:, 1] + 0.5 * slope[:, 2] * sky[:, 1]
    return TensorDataset(sky, slope, melt + 0.05 * torch.randn(n))


def rounds(loader, epochs):
    ticks = itertools.count()
    for epoch in range(epochs):
        for batch in loader:
            yield epoch, next(ticks), batch


net = Melt()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
anneal = annealer(opt, base=0.1, gamma=0.6)
history = []
for epoch, tick, (sky, slope, melt) in rounds(DataLoader(glacier(), batch_size=16, shuffle=True), 10):
    anneal(epoch)
    loss = nn.functional.mse_loss(net(sky, slope), melt)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())

for e in range(0, 10, 2):
    print(f"epoch {e}  loss {sum(history[20 * e:20 * e + 20]) / 20:.4f}")
with torch.no_grad():
    sky, slope, melt = glacier(800).tensors
    print(f"held loss {nn.functional.mse_loss(net(sky, slope), melt):.4f}")
