"""Five-fold cross-validation of a small dose-response network on simulated patients."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 23
FOLDS = 5
PATIENTS = 200
MARKERS = 20


def simulate(rng):
    x = rng.standard_normal((PATIENTS, MARKERS)).astype(np.float32)
    dose = rng.uniform(0.0, 2.0, (PATIENTS, 1)).astype(np.float32)
    effect = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3]
    response = effect + 0.7 * np.tanh(2 * dose[:, 0] - 1.5) + 0.7 * rng.standard_normal(PATIENTS)
    features = np.concatenate([x, dose], axis=1)
    return torch.tensor(features), torch.tensor(response.astype(np.float32))


def block(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, n_out), nn.LayerNorm(n_out), nn.GELU())


class DoseNet(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.encoder = nn.Sequential(block(n_in, width), block(width, width))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)


def reset(model):
    """Fresh weights for the next fold."""
    for layer in model.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def fold_indices(n, k, rng):
    return [torch.tensor(part) for part in np.array_split(rng.permutation(n), k)]


def train_fold(model, x, y, epochs=30, batch=20):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    model.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch):
            opt.zero_grad()
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
        sched.step()
    return loss.item()


@torch.no_grad()
def r_squared(model, x, y):
    model.eval()
    residual = (model(x) - y).pow(2).sum()
    return (1 - residual / (y - y.mean()).pow(2).sum()).item()


def cross_validate(x, y, rng):
    folds = fold_indices(len(x), FOLDS, rng)
    model = DoseNet(x.shape[1])
    scores = []
    for k, held_out in enumerate(folds):
        rest = torch.cat([f for j, f in enumerate(folds) if j != k])
        mean, std = x[rest].mean(0), x[rest].std(0)
        reset(model)
        last = train_fold(model, (x[rest] - mean) / std, y[rest])
        score = r_squared(model, (x[held_out] - mean) / std, y[held_out])
        scores.append(score)
        print(f"fold {k}  last batch loss {last:.4f}  held-out R2 {score:.3f}")
    return model, scores


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    x, y = simulate(rng)
    model, scores = cross_validate(x, y, rng)
    mean_r2 = float(np.mean(scores))
    print(f"cross-validated R2 {mean_r2:.3f} +- {np.std(scores):.3f}")


if __name__ == "__main__":
    main()
