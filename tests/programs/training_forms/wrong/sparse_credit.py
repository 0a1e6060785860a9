from functools import partial
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(31)


class Sparsifier:
    def __init__(self, net, share):
        self.net, self.share, self.keep = net, share, {}

    @torch.no_grad()
    def cut(self):
        for name, weight in self.net.named_parameters():
            if weight.ndim < 2:
                continue
            level = torch.quantile(weight.abs(), self.share)
            self.keep[name] = weight.abs().gt(level).to(weight.dtype)
            weight.copy_(weight * self.keep[name])
            weight.register_hook(partial(torch.mul, self.keep[name]))

    @torch.no_grad()
    def apply(self):
        for name, mask in self.keep.items():
            self.net.get_parameter(name).mul_(mask)

    def density(self):
        live = [self.net.get_parameter(k).ne(0).float().mean() for k in self.keep]
        return torch.stack(live).mean().item() if live else 1.0


def applicants(n):
    x = torch.randn(n, 18)
    risk = x[:, 0] - 0.8 * x[:, 3] + x[:, 5] * x[:, 7] - 0.4
    return x, (risk + 0.3 * torch.randn(n) > 0).float()


x, y = applicants(1000)
net = nn.Sequential(nn.Linear(18, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
sparsifier = Sparsifier(net, 0.7)
for epoch in range(8):
    if epoch == 4:
        sparsifier.cut()
        print(f"density after cut {sparsifier.density():.3f}")
    for rows in torch.randperm(len(x)).split(100):
        loss = F.binary_cross_entropy_with_logits(net(x[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
print(f"density at the end {sparsifier.density():.3f}")
