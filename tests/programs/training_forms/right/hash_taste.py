import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(56)
CLIENTS, GOODS, BITS = 40, 60, 16


def bridge(value, slope):
    return slope + (value - slope).detach()


class HashMatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.clients = nn.Embedding(CLIENTS, 24)
        self.goods = nn.Embedding(GOODS, 24)
        self.to_bits = nn.Linear(24, BITS)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.lean = nn.Parameter(torch.zeros(GOODS))

    def bits(self, v):
        smooth = torch.tanh(self.to_bits(v))
        hard = torch.where(smooth >= 0, 1.0, -1.0)
        return bridge(hard, smooth)

    def forward(self, c, g):
        a, b = self.bits(self.clients(c)), self.bits(self.goods(g))
        return self.scale * (a * b).sum(-1) + self.lean[g]


affinity = torch.randn(CLIENTS, 4) @ torch.randn(4, GOODS)


def purchases(n):
    c, g = torch.randint(CLIENTS, (n,)), torch.randint(GOODS, (n,))
    return c, g, (affinity[c, g] > 0).float()


model = HashMatch()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(200):
    c, g, bought = purchases(128)
    loss = F.binary_cross_entropy_with_logits(model(c, g), bought)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"{step + 1} loss {loss.item():.4f} scale {model.scale.item():.4f}")
