from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    width: int = 12
    bn_eps: float = 1e-3
    bn_momentum: float = 0.9
    lr: float = 0.05
    steps: int = 80
    batch: int = 6


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return nn.functional.silu(self.norm(self.conv(x)))


class LeafNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.stem = Block(3, s.width)
        self.stage = Block(s.width, 2 * s.width)
        self.fc = nn.Linear(2 * s.width, 4)
        self.configure(s)

    def configure(self, s):
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eps = s.bn_eps
                m.momentum = s.bn_momentum

    def forward(self, x):
        return self.fc(self.stage(self.stem(x)).mean((2, 3)))


def leaves(n):
    y = torch.randint(0, 4, (n,))
    x = torch.randn(n, 3, 12, 12) * (0.5 + torch.rand(n, 1, 1, 1))
    x[:, 0] += 0.8 * (y % 2).view(-1, 1, 1)
    x[:, 1, :6] += 0.8 * (y // 2).view(-1, 1, 1)
    return x, y


s = Settings()
torch.manual_seed(9)
model = LeafNet(s)
opt = torch.optim.SGD(model.parameters(), lr=s.lr, momentum=0.9, nesterov=True)
model.train()
for k in range(s.steps):
    x, y = leaves(s.batch)
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (k + 1) % 20 == 0:
        print(f"step {k + 1} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    x, y = leaves(400)
    out = model(x)
    print(f"eval loss {nn.functional.cross_entropy(out, y).item():.4f}",
          f"accuracy {(out.argmax(1) == y).float().mean().item():.3f}")
