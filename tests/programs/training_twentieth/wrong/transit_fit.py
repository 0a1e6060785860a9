"""Fit of exoplanet transits in a noisy light curve with a differentiable transit model.

Period, epoch, depth, duration and a slow stellar trend are optimised together from a rough guess.
The optimiser is a Nesterov-style adaptive method with decoupled decay, written for this fit because
the parameters have very different scales.
"""
import torch
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(21)
torch.set_default_dtype(torch.float64)


class NAda(Optimizer):
    """Adaptive steps from a slow average of squared gradients, with heavy first-moment averaging."""

    def __init__(self, params, lr=1e-3, betas=(0.95, 0.99), eps=1e-10, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["count"] = 0
                    state["first"] = torch.zeros_like(p)
                    state["second"] = torch.zeros_like(p)
                first, second = state["first"], state["second"]
                state["count"] += 1
                first = torch.lerp(first, p.grad, 1 - b1)
                second.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                denom = (second / (1 - b2 ** state["count"])).sqrt_().add_(group["eps"])
                look_ahead = b1 * first + (1 - b1) * p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(look_ahead / (1 - b1 ** (state["count"] + 1)), denom, value=-group["lr"])
        return loss


class Transit(nn.Module):
    def __init__(self, period, epoch):
        super().__init__()
        self.period = nn.Parameter(torch.tensor(period))
        self.epoch = nn.Parameter(torch.tensor(epoch))
        self.log_depth = nn.Parameter(torch.tensor(-1.0))
        self.log_half_width = nn.Parameter(torch.tensor(-0.8))
        self.trend = nn.Parameter(torch.zeros(3))

    def forward(self, t):
        phase = torch.remainder(t - self.epoch + 0.5 * self.period, self.period) - 0.5 * self.period
        half = self.log_half_width.exp()
        inside = torch.sigmoid((half - phase.abs()) / 0.05)
        s = t / 30.0 - 1.0
        baseline = self.trend[0] + self.trend[1] * s + self.trend[2] * s ** 2
        return baseline - self.log_depth.exp() * inside


def main(steps=1000, lr=5e-3, batch=256):
    t = torch.sort(60.0 * torch.rand(3000)).values
    star = Transit(7.31, 2.4)
    with torch.no_grad():
        star.log_depth.fill_(0.1)
        star.log_half_width.fill_(-1.2)
        star.trend.copy_(torch.tensor([0.2, -0.4, 0.3]))
        clean = star(t)
    flux = clean + 0.3 * torch.randn_like(t)

    model = Transit(7.25, 2.6)
    optimizer = NAda([
        {"params": [model.period], "lr": 0.1 * lr},
        {"params": [model.epoch, model.log_depth, model.log_half_width, model.trend]},
    ], lr=lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=steps)

    for step in range(steps):
        idx = torch.randint(len(t), (batch,))
        loss = nn.functional.huber_loss(model(t[idx]), flux[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 250 == 0:
            with torch.no_grad():
                rms = (model(t) - clean).pow(2).mean().sqrt().item()
            print(f"step {step + 1:5d}  rms to the noiseless curve {rms:.4f}  period {model.period.item():.4f}")
    print(f"epoch {model.epoch.item():.3f}  depth {model.log_depth.exp().item():.3f}  "
          f"half width {model.log_half_width.exp().item():.3f}")
    return rms, model, optimizer


if __name__ == "__main__":
    rms, model, optimizer = main()
