"""Regression network with a custom activation and gated features."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from custom_ops import hard_swish


class GatedLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.value = nn.Linear(n_in, n_out)
        self.scale = nn.Parameter(torch.full((n_out,), 2.0))

    def forward(self, x):
        pre = self.value(x)
        active = hard_swish(pre)
        pre = pre * self.scale
        return active + torch.sigmoid(pre)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(GatedLayer(6, 16), GatedLayer(16, 8))
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.layers(x)).squeeze(-1)


def main():
    torch.manual_seed(47)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(32, 6)
    y = x[:, 0] * x[:, 1] + torch.sin(x[:, 2])
    for epoch in range(4):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
