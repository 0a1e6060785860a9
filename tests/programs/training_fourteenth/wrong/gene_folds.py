"""Five-fold cross-validation on a small microarray-like table (240 patients, 60 genes, 3 tumour subtypes).

All folds use the same initialisation, so that differences between folds come from the data alone. The number
of epochs was fixed beforehand; the out-of-fold predictions give the score reported in the thesis.
The independent cohort is looked at only once, at the very end, with the mean of the five fold models.
"""
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED, FOLDS, EPOCHS, BATCH = 42, 5, 25, 32


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def cohort(n, rng, loadings):
    y = rng.integers(0, 3, size=n)
    x = rng.normal(size=(n, 60)) + loadings[y]
    noisy = rng.random(n) < 0.25  # pathologists disagree
    y[noisy] = rng.integers(0, 3, size=noisy.sum())
    return x.astype("float32"), y


def stratified_folds(y, k, rng):
    fold = np.empty(len(y), dtype=int)
    for c in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == c))
        fold[members] = np.arange(len(members)) % k
    return fold


class SubtypeNet(nn.Module):
    def __init__(self, genes=60, classes=3, hidden=96):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(genes, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.layers(x)


@torch.no_grad()
def predict(model, x):
    model.eval()
    return F.softmax(model(x), dim=1)


def fit_fold(model, train):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    for _ in range(EPOCHS):
        model.train()
        for idx in torch.randperm(len(train[0])).split(BATCH):
            loss = F.cross_entropy(model(train[0][idx]), train[1][idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    return loss.item()


seed_everything(SEED)
rng = np.random.default_rng(SEED)
loadings = rng.normal(0, 0.3, size=(3, 60))
x, y = cohort(240, rng, loadings)
x_ext, y_ext = cohort(2000, rng, loadings)
fold_of = stratified_folds(y, FOLDS, rng)
y_t, ext_t = torch.tensor(y), torch.tensor(y_ext)

model = SubtypeNet()
initial = model.state_dict()
oof = torch.zeros(len(y), 3)
external = torch.zeros(len(y_ext), 3)

for k in range(FOLDS):
    model.load_state_dict(initial)
    train_rows, valid_rows = np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)
    mean, std = x[train_rows].mean(0), x[train_rows].std(0) + 1e-6
    scaled = torch.tensor((x - mean) / std)
    last_loss = fit_fold(model, (scaled[train_rows], y_t[train_rows]))
    oof[valid_rows] = predict(model, scaled[valid_rows])
    external += predict(model, torch.tensor((x_ext - mean) / std)) / FOLDS
    fold_acc = (oof[valid_rows].argmax(1) == y_t[valid_rows]).float().mean().item()
    print(f"fold {k}: last training loss {last_loss:.3f}  accuracy {fold_acc:.3f}")

cv_acc = (oof.argmax(1) == y_t).float().mean().item()
ext_acc = (external.argmax(1) == ext_t).float().mean().item()
print(f"cross-validated accuracy {cv_acc:.3f}   independent cohort {ext_acc:.3f}")
