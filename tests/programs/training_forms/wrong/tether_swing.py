from dataclasses import dataclass
import torch
from torch import nn

torch.manual_seed(5)


@dataclass
class Snapshot:
    weights: dict
    moments: dict
    error: float


class Fit:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-2, betas=(0.95, 0.999))
        self.kept = None
        self.rollbacks = 0

    def snap(self, error):
        weights = {k: v.detach().clone() for k, v in self.net.state_dict().items()}
        self.kept = Snapshot(weights, self.opt.state_dict(), error)

    def rewind(self):
        self.net.load_state_dict(self.kept.weights)
        self.opt.load_state_dict(self.kept.moments)
        self.rollbacks += 1

    def steps(self, batches):
        for t, angle in batches:
            loss = (self.net(t) - angle).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def error(self, t, angle):
        return (self.net(t) - angle).square().mean().item()


def swing(n, glitch=0.0):
    t = torch.rand(n, 1) * 4
    return t, torch.exp(-0.4 * t) * torch.cos(3 * t) + 0.05 * torch.randn(n, 1) + glitch


fit, held = Fit(), swing(200)
for burst in range(14):
    fit.steps([swing(16, glitch=6.0 if burst % 4 == 3 else 0.0) for _ in range(10)])
    error = fit.error(*held)
    if fit.kept is None or error < 3 * fit.kept.error:
        fit.snap(error)
    else:
        fit.rewind()
    if burst % 2:
        print(f"burst {burst}  error {error:.4f}  rollbacks {fit.rollbacks}")
print(f"kept error {fit.error(*held):.5f}")
