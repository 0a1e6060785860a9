"""Metric learning on synthetic glyphs: batch-hard triplet loss, evaluated by recall@1 on unseen classes."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, N_CLASSES, N_HELD_OUT = 12, 40, 20
P, K = 10, 4          # classes per batch, samples per class
STEPS, MARGIN, DIM = 250, 0.2, 32


def make_glyphs(n_classes, per_class, rng):
    strokes = rng.normal(0, 1, size=(n_classes, SIDE, SIDE))
    strokes = np.where(np.abs(strokes) > 1.0, np.sign(strokes), 0.0)
    backgrounds = rng.normal(0, 1, size=(4, SIDE, SIDE))
    xs, ys = [], []
    for c in range(n_classes):
        for _ in range(per_class):
            clutter = np.tensordot(rng.normal(0, 0.8, size=4), backgrounds, axes=1)
            xs.append(strokes[c] + clutter + rng.normal(0, 0.5, size=(SIDE, SIDE)))
            ys.append(c)
    xs = np.asarray(xs, dtype=np.float32)[:, None]
    return torch.from_numpy(xs), torch.tensor(ys)


class Embedder(nn.Module):
    def __init__(self, dim=DIM):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, 96), nn.ReLU(), nn.Linear(96, dim),
        )

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


def pairwise_distances(emb):
    sq = 2.0 - 2.0 * emb @ emb.t()
    return sq.clamp(min=1e-6).sqrt()


class BatchHardTriplet(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, emb, labels):
        dist = pairwise_distances(emb)
        same = labels[:, None] == labels[None, :]
        eye = torch.eye(len(labels), dtype=torch.bool)
        positive_mask = (same & ~eye).float()
        negative_mask = (~same).float()
        hardest_positive = (dist * positive_mask).max(dim=1).values
        hardest_negative = (dist * negative_mask).min(dim=1).values
        losses = F.relu(hardest_positive - hardest_negative + self.margin)
        active = (losses > 0).float().mean()
        return losses.mean(), active


class BalancedSampler:
    def __init__(self, labels):
        self.by_class = [torch.nonzero(labels == c).flatten() for c in labels.unique()]

    def sample(self):
        classes = torch.randperm(len(self.by_class))[:P]
        picks = [self.by_class[c][torch.randperm(len(self.by_class[c]))[:K]] for c in classes]
        return torch.cat(picks)


@torch.no_grad()
def recall_at_1(model, x, y):
    model.eval()
    dist = pairwise_distances(model(x))
    dist.fill_diagonal_(float("inf"))
    nearest = dist.argmin(dim=1)
    model.train()
    return (y[nearest] == y).float().mean().item()


def main():
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    x, y = make_glyphs(N_CLASSES + N_HELD_OUT, 12, rng)
    seen = y < N_CLASSES
    train_x, train_y, test_x, test_y = x[seen], y[seen], x[~seen], y[~seen]

    model = Embedder()
    criterion = BatchHardTriplet(MARGIN)
    sampler = BalancedSampler(train_y)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"recall@1 before training {recall_at_1(model, test_x, test_y):.3f}")
    for step in range(1, STEPS + 1):
        idx = sampler.sample()
        loss, active = criterion(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f} active {active.item():.2f}")
    recall = recall_at_1(model, test_x, test_y)
    print(f"recall@1 on unseen classes {recall:.3f}")
    return recall, model(test_x).detach()


if __name__ == "__main__":
    recall, test_emb = main()
