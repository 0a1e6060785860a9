"""Echo state network: fixed random recurrence, trained readout."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Reservoir(nn.Module):
    def __init__(self, n_in, size, radius=0.9, leak=0.5):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < 0.2)
        w = w * (radius / torch.linalg.eigvals(w).abs().max())
        self.register_buffer("w", w)
        self.register_buffer("w_in", 0.5 * torch.randn(size, n_in))
        self.leak = leak

    @torch.no_grad()
    def forward(self, series):
        state = torch.zeros(self.w.shape[0])
        states = []
        for u in series:
            state = (1 - self.leak) * state + self.leak * torch.tanh(self.w @ state + self.w_in @ u)
            states.append(state)
        return torch.stack(states)


def quasi_periodic(n):
    t = torch.arange(n, dtype=torch.float)
    s = torch.sin(0.21 * t) * torch.cos(0.083 * t) + 0.4 * torch.sin(0.47 * t)
    return s.unsqueeze(1)


def main():
    torch.manual_seed(13)
    series = quasi_periodic(700)
    reservoir = Reservoir(1, 60)
    states = reservoir(series[:-1])
    targets = series[1:]
    warmup, cut = 50, 550
    x, y = states[warmup:cut], targets[warmup:cut]
    x_test, y_test = states[cut:], targets[cut:]
    readout = nn.Linear(60, 1)
    opt = torch.optim.Adam(readout.parameters(), lr=1e-2, weight_decay=1e-5)
    for epoch in range(30):
        for idx in torch.randperm(len(x)).split(50):
            loss = F.mse_loss(readout(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 10 == 9:
            with torch.no_grad():
                test = F.mse_loss(readout(x_test), y_test).item()
            print(f"epoch {epoch}: train {loss.item():.5f} test {test:.5f} variance {y_test.var().item():.5f}")


if __name__ == "__main__":
    main()
