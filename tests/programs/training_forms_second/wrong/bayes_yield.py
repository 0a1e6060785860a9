import math
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(30)


class NoisyLinear(nn.Module):
    def __init__(self, fan_in, fan_out, prior=0.3):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(fan_out, fan_in) / math.sqrt(fan_in))
        self.rho = nn.Parameter(torch.full((fan_out, fan_in), -4.0))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        self.prior = prior

    def forward(self, x):
        std = F.softplus(self.rho)
        weight = self.mu + std * torch.randn_like(std)
        return F.linear(x, weight, self.bias)

    def divergence(self):
        std = F.softplus(self.rho)
        ratio = (std / self.prior).pow(2)
        return 0.5 * (ratio + (self.mu / self.prior).pow(2) - 1 - ratio.log()).sum()


class CropNet(nn.Sequential):
    def __init__(self, features):
        super().__init__(NoisyLinear(features, 32), nn.ReLU(), NoisyLinear(32, 1))

    def complexity(self):
        total = 0.0
        for layer in self.children():
            if isinstance(layer, NoisyLinear):
                total += layer.divergence().item()
        return total


def fields(n=300, features=8):
    x = torch.randn(n, features)
    y = x[:, :1] * 1.5 - x[:, 1:2].clamp(min=0) + 0.3 * torch.randn(n, 1)
    return x, y


x, y = fields()
net = CropNet(x.size(1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
sigma = 0.3

for epoch in range(25):
    for idx in torch.randperm(len(x)).split(60):
        fit = 0.5 * ((net(x[idx]) - y[idx]) / sigma).pow(2).mean()
        loss = fit + net.complexity() / len(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d} elbo loss {loss.item():.4f} fit {fit.item():.4f}")
print("mean posterior std", F.softplus(net[0].rho).mean().item())
