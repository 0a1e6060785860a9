"""Regression with Monte Carlo dropout for uncertainty."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = self.drop(F.silu(self.fc1(x)))
        x = self.drop(F.silu(self.fc2(x)))
        return self.fc3(x)


def curve(n):
    x = 4 * torch.rand(n, 1) - 2
    return x, torch.sin(2 * x) + 0.1 * torch.randn(n, 1)


def validate(net, x, y):
    net.eval()
    with torch.no_grad():
        return F.mse_loss(net(x), y).item()


@torch.no_grad()
def predict_with_spread(net, x, samples=30):
    net.eval()
    net.drop.train()
    draws = torch.stack([net(x) for _ in range(samples)])
    net.drop.eval()
    return draws.mean(dim=0), draws.std(dim=0)


def main():
    torch.manual_seed(40)
    x, y = curve(320)
    x_val, y_val = curve(160)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(20):
        net.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = F.mse_loss(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        val = validate(net, x_val, y_val)
        if epoch % 5 == 4:
            print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")
    inside = predict_with_spread(net, torch.linspace(-2, 2, 50).unsqueeze(1))[1].mean().item()
    outside = predict_with_spread(net, torch.linspace(4, 6, 50).unsqueeze(1))[1].mean().item()
    print(f"spread inside {inside:.3f} outside {outside:.3f}")


if __name__ == "__main__":
    main()
