"""Exact Gaussian process for station readings: restarts, two-phase fit with L-BFGS, and a check on held-out stations."""
import copy
import math

import torch
import torch.nn as nn

torch.manual_seed(29)
torch.set_default_dtype(torch.float64)

N_STATIONS, N_HELD_OUT = 90, 60
RESTARTS = 3


def ozone(site):
    east, north, height = site.unbind(-1)
    return 40 + 9 * torch.sin(3 * east) * torch.cos(2 * north) + 6 * north ** 2 + 0.4 * height


class StationGP(nn.Module):
    def __init__(self, site, value):
        super().__init__()
        self.register_buffer("site", site)
        self.register_buffer("centre", value.mean())
        self.register_buffer("scale", value.std())
        self.register_buffer("target", (value - self.centre) / self.scale)
        self.log_length = nn.Parameter(0.5 * torch.randn(site.shape[1]))
        self.log_signal = nn.Parameter(torch.zeros(()))
        self.log_noise = nn.Parameter(torch.tensor(math.log(0.3)))
        self._solved = None

    def kernel(self, a, b):
        a, b = a / self.log_length.exp(), b / self.log_length.exp()
        sq = (a.pow(2).sum(-1)[:, None] + b.pow(2).sum(-1)[None] - 2 * a @ b.T).clamp(min=0.0)
        return (2 * self.log_signal).exp() * torch.exp(-0.5 * sq)

    def factor(self):
        k = self.kernel(self.site, self.site)
        noise = (2 * self.log_noise).exp() + 1e-8
        chol = torch.linalg.cholesky(k + noise * torch.eye(len(k)))
        alpha = torch.cholesky_solve(self.target[:, None], chol)
        return chol, alpha

    def neg_log_posterior(self):
        chol, alpha = self.factor()
        fit = 0.5 * self.target @ alpha.squeeze(-1)
        volume = chol.diagonal().log().sum()
        prior = 0.5 * (self.log_length / 1.5).pow(2).sum() + 0.5 * (self.log_noise + 2.0).pow(2)
        return fit + volume + 0.5 * len(self.target) * math.log(2 * math.pi) + prior

    def train(self, mode=True):
        self._solved = None
        return super().train(mode)

    @torch.no_grad()
    def predict(self, site):
        if self._solved is None:
            self._solved = self.factor()
        chol, alpha = self._solved
        cross = self.kernel(site, self.site)
        mean = (cross @ alpha).squeeze(-1)
        reduction = torch.linalg.solve_triangular(chol, cross.T, upper=False).pow(2).sum(0)
        variance = (2 * self.log_signal).exp() - reduction + (2 * self.log_noise).exp()
        return self.centre + self.scale * mean, self.scale * variance.sqrt()


def minimise(gp, iterations):
    free = [p for p in gp.parameters() if p.requires_grad]
    optimizer = torch.optim.LBFGS(free, lr=1.0, max_iter=iterations, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = gp.neg_log_posterior()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        return gp.neg_log_posterior().item()


site = torch.rand(N_STATIONS + N_HELD_OUT, 3) * 2 - 1
value = ozone(site) + 0.8 * torch.randn(len(site))
seen, unseen = slice(0, N_STATIONS), slice(N_STATIONS, None)

best, best_state = float("inf"), None
for restart in range(RESTARTS):
    gp = StationGP(site[seen], value[seen])
    # the length scales settle under a generous noise level before the noise itself is fitted
    gp.log_noise.requires_grad_(False)
    first = minimise(gp, 15)
    gp.log_noise.requires_grad_(True)
    second = minimise(gp, 40)
    print(f"restart {restart}: {first:.3f} -> {second:.3f}")
    if second < best:
        best, best_state = second, copy.deepcopy(gp.state_dict())

gp.load_state_dict(best_state)
gp.eval()
mean, std = gp.predict(site[unseen])
rmse = (mean - ozone(site[unseen])).pow(2).mean().sqrt().item()
coverage = ((mean - value[unseen]).abs() < 1.96 * std).double().mean().item()
print(f"best {best:.3f}  length scales {[round(v, 2) for v in gp.log_length.exp().tolist()]}")
print(f"noise {(gp.scale * gp.log_noise.exp()).item():.3f} (true 0.8)  rmse {rmse:.3f}  95% coverage {coverage:.2f}")
