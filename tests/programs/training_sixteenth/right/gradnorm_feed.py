"""Feed ranking with several objectives, balanced by GradNorm (Chen et al., 2018)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

OBJECTIVES = ("click", "dwell", "share")


def make_feed(n, rng, w):
    x = rng.normal(size=(n, 16)).astype(np.float32)
    z = np.tanh(x @ w["latent"])
    click = rng.random(n) < 1 / (1 + np.exp(-2 * z @ w["click"]))
    dwell = 3 * np.maximum(0, z @ w["dwell"] + 1 + 0.3 * rng.normal(size=n))
    share = rng.random(n) < 1 / (1 + np.exp(3 - 2 * z @ w["share"]))
    y = np.stack([click, dwell, share], axis=1).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class FeedModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, width), nn.ReLU())
        self.shared = nn.Linear(width, width)
        self.heads = nn.ModuleList(nn.Sequential(nn.ReLU(), nn.Linear(width, 1)) for _ in OBJECTIVES)

    def forward(self, x):
        h = self.shared(self.trunk(x))
        return torch.cat([head(h) for head in self.heads], dim=1)


def objective_losses(out, y):
    return torch.stack([
        F.binary_cross_entropy_with_logits(out[:, 0], y[:, 0]),
        F.mse_loss(out[:, 1], y[:, 1]),
        F.binary_cross_entropy_with_logits(out[:, 2], y[:, 2]),
    ])


class GradNorm:
    """Task weights with mean 1, pulled so that gradient norms at the last shared layer are balanced."""

    def __init__(self, shared_weight, n_tasks, alpha=0.5, lr=0.02):
        self.shared_weight, self.alpha = shared_weight, alpha
        self.weights = nn.Parameter(torch.ones(n_tasks))
        self.optimizer = torch.optim.Adam([self.weights], lr=lr)
        self.initial = None

    def set_gradient(self, losses):
        if self.initial is None:
            self.initial = losses.detach().clone()
        raw = torch.stack([torch.autograd.grad(l, self.shared_weight, retain_graph=True)[0].norm() for l in losses])
        norms = self.weights * raw
        with torch.no_grad():
            rate = losses / self.initial
            target = norms.mean() * (rate / rate.mean()) ** self.alpha
        self.weights.grad, = torch.autograd.grad((norms - target).abs().sum(), self.weights)
        return norms.detach()

    def step(self):
        self.optimizer.step()
        with torch.no_grad():
            self.weights.clamp_(min=1e-3)
            self.weights.mul_(len(self.weights) / self.weights.sum())


def train(model, x, y, epochs, balance, batch_size=256):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        norms = []
        for idx in torch.randperm(len(x)).split(batch_size):
            losses = objective_losses(model(x[idx]), y[idx])
            norms.append(balance.set_gradient(losses))
            total = (balance.weights.detach() * losses).sum()
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            balance.step()
        if (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1:2d} weights {[round(v, 3) for v in balance.weights.tolist()]} "
                  f"norms {[round(v, 3) for v in torch.stack(norms).mean(0).tolist()]}")


def main():
    torch.manual_seed(6)
    rng = np.random.default_rng(6)
    w = {"latent": rng.normal(0, 0.4, (16, 5)), **{k: rng.normal(size=5) for k in OBJECTIVES}}
    x, y = make_feed(8000, rng, w)
    x_test, y_test = make_feed(4000, rng, w)

    model = FeedModel()
    balance = GradNorm(model.shared.weight, len(OBJECTIVES))
    train(model, x, y, epochs=16, balance=balance)

    with torch.no_grad():
        test = objective_losses(model(x_test), y_test)
        rate = y.mean(0)
        base = objective_losses(torch.stack([rate[0].logit(), rate[1], rate[2].logit()]).expand(len(y_test), 3), y_test)
    for name, value, reference in zip(OBJECTIVES, test.tolist(), base.tolist()):
        print(f"{name:>6}: test loss {value:.4f}, constant prediction {reference:.4f}")


if __name__ == "__main__":
    main()
