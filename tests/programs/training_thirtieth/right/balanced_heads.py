"""GradNorm: several regressions on one trunk, with task weights that even out the pace of learning."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ManyHeads(nn.Module):
    def __init__(self, n_in, width, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(width, 1) for _ in range(tasks)])

    @property
    def last_shared(self):
        return self.trunk[2].weight

    def forward(self, x):
        z = self.trunk(x)
        return torch.cat([head(z) for head in self.heads], dim=1)


class PaceWeights:
    """Weights of the task losses; their sum stays the number of tasks."""

    def __init__(self, tasks, alpha=0.5, lr=0.025):
        self.alpha, self.tasks = alpha, tasks
        self.weights = nn.Parameter(torch.ones(tasks))
        self.optimizer = torch.optim.Adam([self.weights], lr=lr)
        self.initial = None

    def value(self):
        return self.weights.detach().clone()

    def update(self, losses, shared):
        current = losses.detach()
        if self.initial is None:
            self.initial = current
        norms = torch.stack([
            torch.autograd.grad(loss, shared, retain_graph=True)[0].norm() for loss in losses
        ])
        scaled = self.weights * norms
        pace = current / self.initial
        goal = (scaled.mean() * (pace / pace.mean()) ** self.alpha).detach()
        self.optimizer.zero_grad()
        (scaled - goal).abs().sum().backward()
        self.optimizer.step()
        with torch.no_grad():
            self.weights.clamp_(min=1e-3)
            self.weights.mul_(self.tasks / self.weights.sum())


def make_data(n, mixing, scales, generator, noise=0.1):
    x = torch.randn(n, mixing.shape[0], generator=generator)
    y = torch.tanh(x @ mixing) + noise * torch.randn(n, mixing.shape[1], generator=generator)
    return x, y * scales


def train_step(model, optimizer, pace, x, y):
    losses = F.mse_loss(model(x), y, reduction="none").mean(dim=0)
    total = (pace.value() * losses).sum()
    pace.update(losses, model.last_shared)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return losses.detach()


@torch.no_grad()
def explained(model, x, y):
    residual = (model(x) - y).square().mean(0)
    return 1 - residual / y.var(0)


def main():
    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(33)
    mixing = torch.randn(8, 4, generator=generator) / 8 ** 0.5
    scales = torch.tensor([0.2, 1.0, 1.0, 8.0])
    x, y = make_data(800, mixing, scales, generator)
    x_test, y_test = make_data(400, mixing, scales, generator)
    model = ManyHeads(8, 40, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    pace = PaceWeights(4)
    for step in range(1, 201):
        index = torch.randint(0, len(x), (64,))
        losses = train_step(model, optimizer, pace, x[index], y[index])
        if step % 50 == 0:
            shares = ", ".join(f"{w:.3f}" for w in pace.value().tolist())
            print(f"step {step:4d}  losses " + " ".join(f"{v:.4f}" for v in losses.tolist()) + f"  weights {shares}")
    scores = explained(model, x_test, y_test)
    print("explained variance:", ", ".join(f"{s:.3f}" for s in scores.tolist()))
    return model, pace, scores


if __name__ == "__main__":
    main()
