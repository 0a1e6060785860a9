"""Rainfall -> river discharge with a small diagonal state-space model, trained window by window on long records."""
import torch
import torch.nn as nn
import torch.nn.functional as F

WINDOW = 40


def simulate(stations, steps, gen):
    """Two linear reservoirs (fast and slow) fed by bursts of rain; discharge is a nonlinear mix of the levels."""
    rain = (torch.rand(stations, steps, generator=gen) < 0.08) * torch.rand(stations, steps, generator=gen) * 3
    fast, slow = torch.zeros(stations), torch.zeros(stations)
    flow = []
    for t in range(steps):
        fast = 0.70 * fast + 0.30 * rain[:, t]
        slow = 0.96 * slow + 0.04 * rain[:, t] * 2
        flow.append(slow * 2.0 + fast * slow + 0.1 * fast)
    flow = torch.stack(flow, dim=1) + 0.01 * torch.randn(stations, steps, generator=gen)
    return rain.unsqueeze(-1), flow


class ReservoirSSM(nn.Module):
    """x_t = a * x_{t-1} + B u_t with a in (0, 1), followed by a small readout network."""

    def __init__(self, n_state=12, width=24):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(-1.5, 1.0, n_state))
        self.inflow = nn.Linear(1, n_state, bias=False)
        self.readout = nn.Sequential(nn.Linear(n_state, width), nn.Tanh(), nn.Linear(width, 1))
        self.level = None

    def reset(self, batch):
        self.level = torch.zeros(batch, self.decay.numel())

    def step(self, u):
        level = torch.sigmoid(self.decay) * self.level + self.inflow(u)
        self.level = level.detach()  # levels live on between windows, the graph must not
        return self.readout(level).squeeze(-1)

    def forward(self, rain):
        return torch.stack([self.step(u) for u in rain.unbind(1)], dim=1)


def windows(rain, flow):
    return zip(rain.split(WINDOW, dim=1), flow.split(WINDOW, dim=1))


def fit(model, rain, flow, epochs=12, lr=1e-2):
    """Backpropagates through the 40 steps of each window; the level is carried from window to window."""
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.reset(len(rain))
        total, count = 0.0, 0
        for u, q in windows(rain, flow):
            loss = F.mse_loss(model(u), q)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total, count = total + loss.item(), count + 1
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  mse {total / count:.5f}")


@torch.no_grad()
def skill(model, rain, flow, warmup=40):
    """Nash-Sutcliffe efficiency over the record, without the warm-up."""
    model.reset(len(rain))
    pred, q = model(rain)[:, warmup:], flow[:, warmup:]
    return (1 - (pred - q).pow(2).sum() / (q - q.mean()).pow(2).sum()).item()


def main():
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(4)
    rain, flow = simulate(24, 400, gen)
    rain_new, flow_new = simulate(16, 400, gen)
    model = ReservoirSSM()
    fit(model, rain, flow)
    nse = skill(model, rain_new, flow_new)
    half_life = -0.6931 / torch.sigmoid(model.decay.detach()).log()
    print(f"half-lives of the states: {half_life.round(decimals=1).tolist()}")
    print(f"NSE on new stations: {nse:.3f}")
    return model, nse


if __name__ == "__main__":
    model, nse = main()
