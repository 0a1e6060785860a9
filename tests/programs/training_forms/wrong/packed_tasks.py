from dataclasses import dataclass, field
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(8)


@dataclass
class Packed:
    net: nn.Module
    free: dict = field(default_factory=dict)

    def fit(self, opt, x, y, steps):
        for _ in range(steps):
            rows = torch.randint(len(x), (64,))
            loss = F.cross_entropy(self.net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            self.restrict()
            opt.step()
        return loss.item()

    def restrict(self):
        for name, p in self.net.named_parameters():
            if name in self.free:
                p.grad = torch.where(self.free[name], p.grad, torch.zeros(()))

    @torch.no_grad()
    def claim(self, keep):
        for name, p in self.net.named_parameters():
            if p.dim() == 2 and name.startswith("0"):
                cut = p.abs().flatten().quantile(1 - keep)
                self.free[name] = p.abs() < cut
                p.masked_fill_(self.free[name], 0.0)
            else:
                self.free[name] = torch.zeros_like(p, dtype=torch.bool)

    @torch.no_grad()
    def accuracy(self, x, y):
        return (self.net(x).argmax(1) == y).float().mean().item()


def blobs(n, shift):
    centre = torch.randn(4, 20) * 1.1
    y = torch.randint(4, (n,))
    return centre[y] + torch.randn(n, 20) + shift, y


first, second = blobs(600, 0.0), blobs(600, 0.5)
packed = Packed(nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 4)))
print("first task", packed.fit(torch.optim.AdamW(packed.net.parameters(), lr=3e-3), *first, 80))
packed.claim(0.5)
print("after claim", packed.accuracy(*first))
opt = torch.optim.AdamW(packed.net.parameters(), lr=5e-3, weight_decay=0.5)
print("second task", packed.fit(opt, *second, 120))
kept = sum(p[~packed.free[n]].abs().sum() for n, p in packed.net.named_parameters())
print(f"accuracies {packed.accuracy(*first):.3f} {packed.accuracy(*second):.3f} kept mass {kept.item():.3f}")
