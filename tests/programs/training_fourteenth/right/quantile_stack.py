"""Predictive intervals for time-to-relapse: an ensemble of quantile networks that is trained as one stacked model.

Every member sees its own bootstrap sample. A fixed random network is added to each member (randomised priors).
"""
import copy

import torch
import torch.nn as nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

SEED = 17
MEMBERS, FEATS = 6, 5
LEVELS = torch.tensor([0.1, 0.5, 0.9])
STEPS, BATCH = 500, 128


def make_patients(n, gen, spread=1.0):
    x = spread * torch.randn(n, FEATS, generator=gen)
    scale = 0.25 + 0.5 * torch.sigmoid(2 * x[:, 1])
    noise = torch.randn(n, generator=gen)
    return x, torch.sin(1.5 * x[:, 0]) + 0.4 * x[:, 2] * x[:, 3] + scale * noise


class QuantileNet(nn.Module):
    """Median plus positive steps, so that the quantiles cannot cross."""

    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        mid, down, up = self.head(self.body(x)).unbind(-1)
        soft = nn.functional.softplus
        return torch.stack([mid - soft(down), mid, mid + soft(up)], dim=-1)


def pinball(pred, y):
    gap = y.unsqueeze(-1) - pred
    return torch.maximum(LEVELS * gap, (LEVELS - 1) * gap).mean()


class StackedEnsemble:
    def __init__(self):
        nets = [QuantileNet() for _ in range(MEMBERS)]
        priors = [QuantileNet(width=16) for _ in range(MEMBERS)]
        self.params, self.buffers = stack_module_state(nets)
        self.prior_params, self.prior_buffers = stack_module_state(priors)
        self.skeleton = copy.deepcopy(nets[0]).to("meta")
        self.prior_skeleton = copy.deepcopy(priors[0]).to("meta")
        self.opt = torch.optim.Adam(self.params.values(), lr=3e-3)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, STEPS)

    def member(self, params, buffers, prior_params, prior_buffers, x):
        prior = functional_call(self.prior_skeleton, (prior_params, prior_buffers), (x,))
        out = functional_call(self.skeleton, (params, buffers), (x,))
        return out + prior[..., 1:2].detach()

    def step(self, x, y):
        def loss_fn(params, buffers, prior_params, prior_buffers, xb, yb):
            return pinball(self.member(params, buffers, prior_params, prior_buffers, xb), yb)

        detached = {k: v.detach() for k, v in self.params.items()}
        grads, losses = vmap(grad_and_value(loss_fn))(
            detached, self.buffers, self.prior_params, self.prior_buffers, x, y)
        for name, p in self.params.items():
            p.grad = grads[name]
        self.opt.step()
        self.sched.step()
        return losses.detach()

    @torch.no_grad()
    def predict(self, x):
        return vmap(self.member, in_dims=(0, 0, 0, 0, None))(
            self.params, self.buffers, self.prior_params, self.prior_buffers, x)


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    x, y = make_patients(3000, gen)
    x_val, y_val = make_patients(1500, gen)
    x_far, _ = make_patients(1500, gen, spread=4.0)
    bags = torch.randint(0, len(x), (MEMBERS, len(x)), generator=gen)
    model = StackedEnsemble()
    for step in range(STEPS):
        pick = bags.gather(1, torch.randint(0, len(x), (MEMBERS, BATCH), generator=gen))
        losses = model.step(x[pick], y[pick])
        if step % 125 == 0:
            print(f"step {step:4d}  pinball {losses.mean().item():.4f}  between members {losses.std().item():.4f}")

    pred = model.predict(x_val)
    low, mid, high = pred.mean(0).unbind(-1)
    covered = ((y_val > low) & (y_val < high)).float().mean().item()
    print(f"validation pinball {pinball(pred.mean(0), y_val).item():.4f}  coverage of the 80% interval {covered:.3f}")
    print(f"disagreement near {pred[..., 1].std(0).mean().item():.3f}  "
          f"far away {model.predict(x_far)[..., 1].std(0).mean().item():.3f}")


if __name__ == "__main__":
    main()
