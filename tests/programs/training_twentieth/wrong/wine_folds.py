"""Five-fold cross-validation of a small tabular net (course work: wine quality, synthetic)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
FOLDS = 5
EPOCHS = 40
BATCH = 32

torch.manual_seed(SEED)
np.random.seed(SEED)


def make_wines(n=240, features=14):
    x = np.random.randn(n, features).astype(np.float32)
    signal = 1.2 * x[:, 0] - 0.9 * x[:, 1] * x[:, 2] + 0.6 * np.sin(2 * x[:, 3])
    noise = 1.0 * np.random.randn(n)
    y = (signal + noise > 0).astype(np.int64)
    return torch.from_numpy(x), torch.from_numpy(y)


class TabularNet(nn.Module):
    def __init__(self, features, hidden=96, classes=2):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.body(x))


def reset_weights(model):
    """Start every fold from fresh weights."""
    for layer in model.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def split_folds(n, k):
    order = torch.randperm(n)
    chunks = torch.chunk(order, k)
    for i in range(k):
        train = torch.cat([c for j, c in enumerate(chunks) if j != i])
        yield train, chunks[i]


def fit(model, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def score(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


x, y = make_wines()
model = TabularNet(x.shape[1])
scores = []
for fold, (train_idx, val_idx) in enumerate(split_folds(len(x), FOLDS)):
    reset_weights(model)
    mean, std = x[train_idx].mean(0), x[train_idx].std(0)
    x_train, x_val = (x[train_idx] - mean) / std, (x[val_idx] - mean) / std
    last_loss = fit(model, x_train, y[train_idx])
    scores.append(score(model, x_val, y[val_idx]))
    print(f"fold {fold + 1}: last batch loss {last_loss:.4f}  val acc {scores[-1]:.3f}")

cv_accuracy = float(np.mean(scores))
print(f"cross-validated accuracy: {cv_accuracy:.3f} +- {np.std(scores):.3f}")
