"""Two-expert regression with hard routing."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RoutedRegressor(nn.Module):
    def __init__(self, n_experts=2):
        super().__init__()
        self.router = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, n_experts))
        self.experts = nn.ModuleList(nn.Linear(2, 1) for _ in range(n_experts))

    def forward(self, x, tau=1.0):
        logits = self.router(x)
        if self.training:
            gate = F.gumbel_softmax(logits, tau=tau, hard=True)
        else:
            gate = F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
        outputs = torch.cat([expert(x) for expert in self.experts], dim=1)
        return (gate * outputs).sum(dim=1)


def piecewise(n):
    x = 4 * torch.rand(n, 2) - 2
    y = torch.where(x[:, 0] > 0, 2 * x[:, 1] + 1, -3 * x[:, 1] - 1)
    return x, y + 0.05 * torch.randn(n)


def main():
    torch.manual_seed(4)
    x, y = piecewise(768)
    x_test, y_test = piecewise(256)
    model = RoutedRegressor()
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    epochs = 20
    for epoch in range(epochs):
        model.train()
        tau = 1.0 - 0.7 * epoch / epochs
        for idx in torch.randperm(len(x)).split(96):
            loss = F.mse_loss(model(x[idx], tau), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            test = F.mse_loss(model(x_test), y_test).item()
        if epoch % 5 == 4:
            print(f"epoch {epoch}: train {loss.item():.4f} test {test:.4f}")


if __name__ == "__main__":
    main()
