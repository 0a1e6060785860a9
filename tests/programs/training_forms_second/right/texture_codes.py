import torch
import torch.nn.functional as F
from torch import nn


def refill(rows, pool, gen):
    pick = torch.randint(len(pool), (len(rows),), generator=gen)
    rows.copy_(pool[pick] + 0.01 * torch.randn(rows.shape, generator=gen))


class Codes(nn.Module):
    def __init__(self, size, dim, gen):
        super().__init__()
        self.table = nn.Parameter(3 * torch.randn(size, dim))
        self.gen = gen
        self.register_buffer("usage", torch.ones(size))

    def forward(self, z):
        index = torch.cdist(z, self.table).argmin(1)
        q = self.table[index]
        cost = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        if self.training:
            counts = torch.bincount(index, minlength=len(self.usage)).float()
            self.usage.mul_(0.8).add_(counts, alpha=0.2)
        return z + (q - z).detach(), cost, index

    @torch.no_grad()
    def revive(self, z, floor=0.1):
        idle = self.usage < floor
        if idle.any():
            rows = self.table[idle]
            refill(rows, z, self.gen)
            self.table[idle] = rows
            self.usage[idle] = 1.0
        return int(idle.sum())


class Patches(nn.Module):
    def __init__(self, gen):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 4))
        self.codes = Codes(48, 4, gen)
        self.dec = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 36))

    def forward(self, x):
        z = self.enc(x)
        q, cost, index = self.codes(z)
        return self.dec(q), cost, index, z.detach()


def main():
    torch.manual_seed(191)
    gen = torch.Generator().manual_seed(15)
    kinds = torch.randn(24, 36, generator=gen)
    net = Patches(gen)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(240):
        which = torch.randint(24, (96,), generator=gen)
        x = kinds[which] + 0.1 * torch.randn(96, 36, generator=gen)
        back, cost, index, z = net(x)
        loss = F.mse_loss(back, x) + cost
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 19:
            net.codes.revive(z)
        if step % 40 == 39:
            print(f"step {step + 1:3d}  mse {F.mse_loss(back, x).item():.4f}  codes in use {index.unique().numel()}")


if __name__ == "__main__":
    main()
