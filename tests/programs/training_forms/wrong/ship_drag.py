import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(53)


class NoisyLinear(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.loc = nn.Parameter(torch.randn(fan_out, fan_in) / fan_in ** 0.5)
        self.rho = nn.Parameter(torch.full((fan_out, fan_in), -4.0))
        self.bias = nn.Parameter(torch.zeros(fan_out))

    @property
    def scale(self):
        return F.softplus(self.rho)

    def forward(self, x):
        weight = torch.normal(self.loc, self.scale)
        return F.linear(x, weight, self.bias)

    def divergence(self):
        var = self.scale.square()
        return 0.5 * (var + self.loc.square() - 1 - var.log()).sum()


class DragNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = NoisyLinear(3, 24)
        self.final = NoisyLinear(24, 1)

    def forward(self, x):
        return self.final(torch.tanh(self.hidden(x))).squeeze(-1)

    def divergence(self):
        return sum(m.divergence() for m in self.modules() if isinstance(m, NoisyLinear))


def towing(n):
    x = torch.rand(n, 3) * 2 - 1
    return x, 2 * x[:, 0] * x[:, 1] + x[:, 2] + 0.1 * torch.randn(n)


net, (x, drag) = DragNet(), towing(400)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(300):
    pick = torch.randint(len(x), (64,))
    fit = 10 * F.mse_loss(net(x[pick]), drag[pick])
    loss = fit + net.divergence() / len(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 60 == 59:
        print(f"step {step + 1}  loss {loss.item():.4f}  fit {fit.item():.4f}")

with torch.no_grad():
    x, drag = towing(400)
    mean = torch.stack([net(x) for _ in range(16)]).mean(0)
    print(f"held error {F.mse_loss(mean, drag):.4f}")
