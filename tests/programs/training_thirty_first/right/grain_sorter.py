"""Sorting grains with noisy labels: sharpness-aware minimisation around SGD, batch statistics kept from one pass."""
import torch
import torch.nn as nn
import torch.nn.functional as F

FEATURES = 16
KINDS = 4


def make_grains(count, centres, noise):
    labels = torch.randint(KINDS, (count,))
    x = centres[labels] + torch.randn(count, FEATURES)
    flip = torch.rand(count) < noise
    noisy = torch.where(flip, torch.randint(KINDS, (count,)), labels)
    return x, noisy


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["origin"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p in self.state:
                    p.data = self.state[p]["origin"]
        self.base_optimizer.step()
        self.zero_grad()


def hold_statistics(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.kept_momentum = m.momentum
            m.momentum = 0.0


def release_statistics(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d) and hasattr(m, "kept_momentum"):
            m.momentum = m.kept_momentum


def build(width=48):
    return nn.Sequential(
        nn.Linear(FEATURES, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, KINDS),
    )


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    hits = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return hits


def train(model, x, y, epochs, batch=64):
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9, weight_decay=5e-4)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=steps)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            if len(rows) < batch:
                continue
            release_statistics(model)
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.ascend()
            hold_statistics(model)
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.descend()
            schedule.step()
            total += loss.item()
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  loss {total / (len(x) // batch):.4f}  lr {schedule.get_last_lr()[0]:.4f}")
    release_statistics(model)


def main():
    torch.manual_seed(19)
    centres = 0.9 * torch.randn(KINDS, FEATURES)
    x_train, y_train = make_grains(1280, centres, noise=0.3)
    x_test, y_test = make_grains(1000, centres, noise=0.0)
    model = build()
    train(model, x_train, y_train, epochs=9)
    print(f"test accuracy {accuracy(model, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
