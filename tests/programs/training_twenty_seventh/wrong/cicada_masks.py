"""Classify insect calls from small log-mel patches, with SpecAugment style masking."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

N_MELS, N_FRAMES, N_CLASSES = 20, 32, 5


def synth_call(kind, rng):
    """One call: a chirp track whose slope and pulse rate depend on the species."""
    t = np.arange(N_FRAMES)
    start = rng.integers(4, 8)
    track = start + (kind - 2) * 0.12 * t + 4
    mel = np.arange(N_MELS)[:, None]
    patch = np.exp(-0.5 * ((mel - track[None]) / 1.2) ** 2)
    patch *= 0.6 + 0.4 * np.cos(2 * np.pi * t / (4 + kind) + rng.uniform(0, 6.28))[None]
    return (1.4 * patch + 0.45 * rng.standard_normal(patch.shape)).astype(np.float32)


class FreqMask:
    def __init__(self, width, rng):
        self.width, self.rng = width, rng

    def __call__(self, spec):
        w = self.rng.integers(1, self.width + 1)
        f0 = self.rng.integers(0, spec.shape[0] - w)
        spec[f0:f0 + w] = spec.mean()
        return spec


class TimeMask:
    def __init__(self, width, rng):
        self.width, self.rng = width, rng

    def __call__(self, spec):
        w = self.rng.integers(1, self.width + 1)
        t0 = self.rng.integers(0, spec.shape[1] - w)
        spec[:, t0:t0 + w] = spec.mean()
        return spec


class CallDataset(Dataset):
    """Spectrograms are computed once and kept in memory."""

    def __init__(self, size, seed, transforms=()):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, N_CLASSES, size)
        self.specs = [synth_call(k, rng) for k in self.labels]
        self.transforms = transforms

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spec = self.specs[i]
        for t in self.transforms:
            spec = t(spec)
        return torch.from_numpy(spec).unsqueeze(0), int(self.labels[i])


class CallNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * width * 5 * 8, N_CLASSES)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.head(x.flatten(1))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main(epochs=7, lr=2e-3, seed=3):
    torch.manual_seed(seed)
    aug_rng = np.random.default_rng(seed + 1)
    train_set = CallDataset(400, seed=21, transforms=[FreqMask(4, aug_rng), TimeMask(6, aug_rng)])
    val_set = CallDataset(400, seed=22)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    model = CallNet()
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        model.train()
        losses = []
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()
        print(f"epoch {epoch:2d}  train loss {np.mean(losses):.3f}  val acc {evaluate(model, val_loader):.3f}")
    return model, train_set, evaluate(model, val_loader)


if __name__ == "__main__":
    model, train_set, val_acc = main()
