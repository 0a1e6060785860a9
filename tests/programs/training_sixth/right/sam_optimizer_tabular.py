"""Sharpness-aware minimisation as a wrapper optimizer, on tabular data with noisy labels."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_cls, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base_cls(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["backup"] = p.detach().clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if "backup" in self.state[p]:
                    p.copy_(self.state[p]["backup"])
        self.base.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.ascend()
        closure()
        self.descend()
        return loss


@torch.no_grad()
def set_batchnorm_momentum(model, active):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = 0.1 if active else 0.0


def make_table(n, w, noise):
    x = torch.randn(n, w.size(0))
    y = ((x @ w[:, 0]) * (x @ w[:, 1]) > 0).long()
    flip = torch.rand(n) < noise
    return x, torch.where(flip, 1 - y, y)


torch.manual_seed(12)
w = torch.randn(12, 2) / 3
x, y = make_table(1200, w, 0.1)
x_test, y_test = make_table(800, w, 0.0)
model = nn.Sequential(
    nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer.base, step_size=8, gamma=0.3)
for epoch in range(16):
    model.train()
    total = 0.0
    for idx in torch.randperm(x.size(0)).split(100):
        passes = iter((True, False))

        def closure():
            set_batchnorm_momentum(model, next(passes))
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            return loss

        total += optimizer.step(closure).item()
    scheduler.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch} loss {total / 12:.3f} clean test accuracy {acc:.3f}")
