"""Magnitude pruning of a credit-risk network: train, prune in three rounds with fine-tuning, report size and AUC."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 2
FEATURES = 40
ROUNDS = (0.5, 0.75, 0.9)


def make_loans(n, rng):
    x = rng.normal(size=(n, FEATURES))
    x[:, 20:] = 0.7 * x[:, :20] + 0.7 * x[:, 20:]
    risk = (1.2 * x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.8 * np.abs(x[:, 3]) - 0.9 * x[:, 4]
            + 0.6 * x[:, 5] * (x[:, 6] > 0) - 0.8)
    y = rng.random(n) < 1 / (1 + np.exp(-1.5 * risk))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Grader(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Pruner:
    """Global magnitude pruning of the hidden layers; the masks also silence the gradients of what is cut."""

    def __init__(self, model):
        self.layers = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features > 1]
        self.masks = [torch.ones_like(m.weight) for m in self.layers]
        for i, layer in enumerate(self.layers):
            layer.weight.register_hook(lambda grad, i=i: grad * self.masks[i])

    @torch.no_grad()
    def prune_to(self, sparsity):
        scores = torch.cat([(m.weight.abs() * k).flatten() for m, k in zip(self.layers, self.masks)])
        threshold = scores.kthvalue(int(sparsity * scores.numel())).values
        for i, layer in enumerate(self.layers):
            self.masks[i] = (layer.weight.abs() * self.masks[i] > threshold).float()
            layer.weight.mul_(self.masks[i])

    def sparsity(self):
        kept = sum(k.sum().item() for k in self.masks)
        return 1 - kept / sum(k.numel() for k in self.masks)


def fit(model, opt, x, y, epochs):
    model.train()
    for _ in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(128):
            loss = F.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def auc(model, x, y):
    model.eval()
    order = model(x).argsort()
    rank = torch.empty(len(x))
    rank[order] = torch.arange(1, len(x) + 1, dtype=torch.float32)
    pos = y.sum()
    return ((rank[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))).item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    x, y = make_loans(4000, rng)
    x_val, y_val = make_loans(2000, rng)
    model = Grader()
    pruner = Pruner(model)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss = fit(model, opt, x, y, epochs=8)
    print(f"dense          train {loss:.4f}  auc {auc(model, x_val, y_val):.4f}")
    for target in ROUNDS:
        pruner.prune_to(target)
        loss = fit(model, opt, x, y, epochs=5)
        score = auc(model, x_val, y_val)
        print(f"sparsity {pruner.sparsity():.3f} train {loss:.4f}  auc {score:.4f}")
    return model, pruner, score


if __name__ == "__main__":
    model, pruner, score = main()
