"""Reservoir inflow forecast: a small network learns features, the readout of each step is the ridge solution on them."""
import math

import torch
import torch.nn as nn

CONTEXT, HORIZON, RIDGE = 30, 5, 1e-2


def inflow(days, seed):
    g = torch.Generator().manual_seed(seed)
    rain = torch.relu(torch.randn(days, generator=g)) ** 2
    level, out = 0.0, []
    for day, r in enumerate(rain.tolist()):
        season = 0.5 + 0.4 * math.sin(2 * math.pi * day / 365)
        level = 0.85 * level + 0.3 * r * (season + 0.3 * math.tanh(level))
        out.append(level)
    series = torch.stack([rain, torch.tensor(out)], dim=1)
    return series + 0.02 * torch.randn(days, 2, generator=g)


def supervised(series, mean, std):
    z = (series - mean) / std
    cut = z.unfold(0, CONTEXT + HORIZON, 1)                 # (windows, 2, context + horizon)
    return cut[:, :, :CONTEXT].flatten(1), cut[:, 1, CONTEXT:]


class InflowNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(2 * CONTEXT, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
        )
        self.readout = nn.Linear(hidden, HORIZON)
        self.readout.requires_grad_(False)

    def forward(self, x):
        return self.readout(self.features(x))

    @torch.no_grad()
    def solve_readout(self, x, y):
        """Minimises mean squared error + RIDGE * |W|^2 over the readout; the bias is not penalised."""
        h = self.features(x).double()
        y = y.double()
        h_mean, y_mean = h.mean(0), y.mean(0)
        hc, yc = h - h_mean, y - y_mean
        gram = hc.t() @ hc / len(h) + RIDGE * torch.eye(h.shape[1], dtype=torch.float64)
        weight = torch.linalg.solve(gram, hc.t() @ yc / len(h)).t()
        self.readout.weight.copy_(weight)
        self.readout.bias.copy_(y_mean - weight @ h_mean)


def objective(model, x, y):
    error = (model(x) - y).square().sum(dim=1).mean()
    return error + RIDGE * model.readout.weight.square().sum()


@torch.no_grad()
def rmse(model, x, y):
    return (model(x) - y).square().mean().sqrt().item()


def fit(model, train, valid, epochs=120, lr=4e-3, patience=25):
    opt = torch.optim.Adam(model.features.parameters(), lr=lr)
    best, best_state, waited = float("inf"), None, 0
    for epoch in range(1, epochs + 1):
        model.solve_readout(*train)
        loss = objective(model, *train)
        score = rmse(model, *valid)
        if score < best:
            best, waited = score, 0
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            waited += 1
            if waited > patience:
                break
        if epoch % 20 == 0 or epoch == 1:
            print(f"epoch {epoch:3d}  objective {loss.item():.4f}  valid rmse {score:.4f}")
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.load_state_dict(best_state)
    return best


def main():
    torch.manual_seed(2)
    series = inflow(2600, seed=2)
    parts = series[:1700], series[1700:2100], series[2100:]
    mean, std = parts[0].mean(0), parts[0].std(0)
    train, valid, test = (supervised(p, mean, std) for p in parts)
    model = InflowNet()
    best = fit(model, train, valid)
    naive = (test[0][:, -1:] - test[1]).square().mean().sqrt().item()
    print(f"best valid rmse {best:.4f}  test rmse {rmse(model, *test):.4f}  persistence {naive:.4f}")
    return model, train, valid, test


if __name__ == "__main__":
    main()
