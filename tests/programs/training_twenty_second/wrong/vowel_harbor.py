"""Spoken-command classifier on cached log-mel features, with SpecAugment."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    n_mels: int = 24
    n_frames: int = 40
    n_commands: int = 6
    n_train: int = 480
    n_valid: int = 300
    epochs: int = 14
    batch_size: int = 32
    lr: float = 2e-3
    time_mask: int = 6
    freq_mask: int = 4


def synthesize(cfg, n, gen):
    """Each command is a pair of formants that glide over time; speakers differ in pitch, rate and loudness."""
    labels = torch.randint(0, cfg.n_commands, (n,), generator=gen)
    t = torch.linspace(0, 1, cfg.n_frames)
    mels = torch.arange(cfg.n_mels).view(1, -1, 1).float()
    shift = torch.randn(n, 1, generator=gen)
    rate = 1 + 0.15 * torch.randn(n, 1, generator=gen)
    first = 6 + shift + 1.2 * (labels % 3 - 1).unsqueeze(1) * torch.sin(3 * rate * t)
    second = 15 + shift + 1.5 * (labels // 3 * 2 - 1).unsqueeze(1) * (rate * t - 0.5)
    spec = sum(torch.exp(-((mels - f.unsqueeze(1)) ** 2) / 4) for f in (first, second))
    spec = spec * (1 + 0.3 * torch.rand(n, 1, 1, generator=gen))
    return spec + 0.4 * torch.randn(spec.shape, generator=gen), labels


class SpecAugment:
    """Masks one band of mel bins and one span of frames (Park et al., 2019, without time warping)."""

    def __init__(self, time_mask, freq_mask):
        self.time_mask = time_mask
        self.freq_mask = freq_mask

    def __call__(self, spec):
        n_mels, n_frames = spec.shape
        width = int(torch.randint(1, self.freq_mask + 1, ()))
        low = int(torch.randint(0, n_mels - width, ()))
        spec[low:low + width] = 0.0
        width = int(torch.randint(1, self.time_mask + 1, ()))
        low = int(torch.randint(0, n_frames - width, ()))
        spec[:, low:low + width] = 0.0
        return spec


class CommandSet(Dataset):
    def __init__(self, feats, labels, transform=None):
        self.feats = (feats - 0.34) / 0.59  # mean and spread over the corpus
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spec = self.feats[i]
        if self.transform is not None:
            spec = self.transform(spec)
        return spec, self.labels[i]


class CommandNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(cfg.n_mels, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 48, 5, padding=2), nn.ReLU(),
        )
        self.gru = nn.GRU(48, 32, batch_first=True)
        self.head = nn.Linear(32, cfg.n_commands)

    def forward(self, spec):
        out, _ = self.gru(self.conv(spec).transpose(1, 2))
        return self.head(out.mean(dim=1))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(-1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


cfg = Config()
torch.manual_seed(3)
gen = torch.Generator().manual_seed(17)
train_set = CommandSet(*synthesize(cfg, cfg.n_train, gen), SpecAugment(cfg.time_mask, cfg.freq_mask))
valid_set = CommandSet(*synthesize(cfg, cfg.n_valid, gen))
train_loader = DataLoader(train_set, cfg.batch_size, shuffle=True)
valid_loader = DataLoader(valid_set, 128)
model = CommandNet(cfg)
opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
for epoch in range(cfg.epochs):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch:2d}  train loss {loss.item():.3f}  valid acc {evaluate(model, valid_loader):.3f}")
