"""5-fold cross-validation of a small MLP that predicts readmission from blood values and vital signs.

The table is small, so one split is too noisy; we report the mean validation accuracy over the folds.
"""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

SEED = 7
N_PATIENTS, N_FEATURES = 300, 40
N_FOLDS, N_EPOCHS = 5, 20

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def make_patients(n):
    x = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    score = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.6 * x[:, 2] * x[:, 3] + 1.2 * rng.normal(size=n)
    y = (score > 0).astype(np.int64)
    return torch.from_numpy(x), torch.from_numpy(y)


class ReadmissionNet(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x))


def reset_weights(model):
    """Give the model new random weights so that every fold starts from scratch."""
    for layer in model.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def fold_indices(n, k):
    order = rng.permutation(n)
    parts = np.array_split(order, k)
    for i in range(k):
        val = parts[i]
        train = np.concatenate([parts[j] for j in range(k) if j != i])
        yield train.tolist(), val.tolist()


def train_fold(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(N_EPOCHS):
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


x, y = make_patients(N_PATIENTS)
x_new, y_new = make_patients(2000)
dataset = TensorDataset(x, y)
model = ReadmissionNet(N_FEATURES)

fold_acc = []
for fold, (train_idx, val_idx) in enumerate(fold_indices(N_PATIENTS, N_FOLDS)):
    reset_weights(model)
    loader = DataLoader(Subset(dataset, train_idx), batch_size=32, shuffle=True)
    train_loss = train_fold(model, loader)
    acc = accuracy(model, x[val_idx], y[val_idx])
    fold_acc.append(acc)
    print(f"fold {fold + 1}: train loss {train_loss:.3f}  val acc {acc:.3f}")

cv_acc = float(np.mean(fold_acc))
print(f"cross-validated accuracy: {cv_acc:.3f} +- {np.std(fold_acc):.3f}")

# final model on the whole table, checked on patients of the following year
reset_weights(model)
train_fold(model, DataLoader(dataset, batch_size=32, shuffle=True))
new_acc = accuracy(model, x_new, y_new)
print(f"accuracy on new patients: {new_acc:.3f}")
