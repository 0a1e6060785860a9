"""Regression with an online input normaliser kept in buffers."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class OnlineNorm(nn.Module):
    def __init__(self, dim, momentum=0.05, eps=1e-4):
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        start = torch.zeros(dim)
        self.register_buffer("mean", start)
        self.register_buffer("mean_sq", start)

    @torch.no_grad()
    def observe(self, x):
        m = self.momentum
        self.mean.mul_(1 - m).add_(m * x.mean(dim=0))
        self.mean_sq.mul_(1 - m).add_(m * x.pow(2).mean(dim=0))

    def forward(self, x):
        if self.training:
            self.observe(x)
        var = (self.mean_sq - self.mean.pow(2)).clamp(min=self.eps)
        return ((x - self.mean) / (var + self.eps).sqrt()).clamp(-5, 5)


def sensor_rows(n, dim=8):
    scale = torch.linspace(0.5, 4.0, dim)
    offset = torch.linspace(-3.0, 3.0, dim)
    z = torch.randn(n, dim)
    y = z[:, 0] - 0.5 * z[:, 1] + torch.sin(z[:, 2])
    return z * scale + offset, y.unsqueeze(1)


def main():
    torch.manual_seed(157)
    x, y = sensor_rows(640)
    x_val, y_val = sensor_rows(200)
    model = nn.Sequential(OnlineNorm(8), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    for batch in x.split(32):
        model[0].observe(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        model.train()
        for idx in torch.randperm(len(x)).split(32):
            loss = F.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")
    return model, x


if __name__ == "__main__":
    main()
