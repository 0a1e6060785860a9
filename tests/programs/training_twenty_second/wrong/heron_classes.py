"""Sharpness-aware minimisation (SAM, Foret et al. 2021) on noisy two-moon style data, with warmup + cosine decay."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SAM(torch.optim.Optimizer):
    """Wraps a base optimizer; call first_step(), recompute the gradient, then second_step()."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        if rho < 0:
            raise ValueError(f"Invalid rho, should be non-negative: {rho}")
        super().__init__(params, dict(rho=rho, **kwargs))
        base_groups = [{k: v for k, v in g.items() if k != "rho"} for g in self.param_groups]
        self.base_optimizer = base_optimizer(base_groups, **kwargs)

    @torch.no_grad()
    def first_step(self):
        scale_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (scale_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["origin"] = p.detach().clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p]["origin"])
        self.base_optimizer.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None, "SAM needs a closure that computes loss and gradient"
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.first_step()
        closure()
        self.second_step()
        return loss

    def _grad_norm(self):
        grads = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        return torch.stack(grads).norm()


def make_data(n, seed, flip=0.1):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=g)
    angle = math.pi * torch.rand(n, generator=g) + math.pi * y
    x = torch.stack([angle.cos() + y - 0.5, angle.sin() + 0.4 * y - 0.2], dim=1)
    x = x + 0.15 * torch.randn(n, 2, generator=g)
    noisy = torch.where(torch.rand(n, generator=g) < flip, 1 - y, y)
    return x, noisy, y


def warmup_cosine(warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    return factor


def main(epochs=60, batch=64):
    torch.manual_seed(0)
    x, y, _ = make_data(512, seed=1)
    xt, _, yt = make_data(2000, seed=2)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    opt = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.3, momentum=0.9, weight_decay=1e-4)
    per_epoch = len(x) // batch
    sched = torch.optim.lr_scheduler.LambdaLR(opt, warmup_cosine(3 * per_epoch, epochs * per_epoch))

    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch):
            def closure():
                loss = F.cross_entropy(model(x[idx]), y[idx])
                loss.backward()
                return loss
            total += opt.step(closure).item()
            sched.step()
        if epoch % 15 == 14:
            print(f"epoch {epoch + 1:2d}  loss {total / per_epoch:.4f}  lr {sched.get_last_lr()[0]:.5f}")

    with torch.no_grad():
        acc = (model(xt).argmax(1) == yt).float().mean().item()
    print(f"test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
