"""Keyword spotting: a pretrained audio encoder gets a new head, then the encoder is unfrozen by a callback."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    n_words: int = 8
    n_mels: int = 20
    n_frames: int = 40
    pretrain_steps: int = 60
    epochs: int = 14
    unfreeze_at: int = 4
    batch_size: int = 16
    noise: float = 2.6
    head_lr: float = 0.02
    encoder_lr: float = 0.01
    seed: int = 3


def utterances(n, words, cfg, noise):
    """Mel-like patches: each word is a sum of two chirps, shifted in time."""
    label = torch.randint(words, (n,))
    t, mel = torch.arange(cfg.n_frames).float(), torch.arange(cfg.n_mels).float()
    tt = t[None] + torch.randint(-6, 7, (n, 1)).float()
    chirps = 4 + label[:, None] % 4 * 3 + 0.08 * tt, 14 - label[:, None] // 4 * 4 + 2.0 * torch.sin(tt / (4 + label[:, None] % 3))
    patch = sum(torch.exp(-0.5 * (mel[None, :, None] - c[:, None]) ** 2) for c in chirps)
    return patch + noise * torch.randn_like(patch), label


class Spotter(nn.Module):
    def __init__(self, cfg, n_out):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(cfg.n_mels, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 48, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.head = nn.Linear(48 * 4, n_out)

    def forward(self, x):
        return self.head(self.encoder(x))


class UnfreezeEncoder:
    def __call__(self, trainer, epoch):
        if epoch + 1 == trainer.cfg.unfreeze_at:
            trainer.model.encoder.requires_grad_(True)
            trainer.opt = trainer.make_optimizer()


class Report:
    def __call__(self, trainer, epoch):
        if epoch % 2:
            print(f"epoch {epoch + 1:2d}  lr {trainer.sched.get_last_lr()[0]:.4f}  valid acc {trainer.accuracy():.3f}")


class Trainer:
    def __init__(self, cfg, model, train, valid, callbacks):
        self.cfg, self.model, self.train, self.valid, self.callbacks = cfg, model, train, valid, callbacks
        model.encoder.requires_grad_(False)
        self.opt = self.make_optimizer()
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, cfg.epochs)

    def make_optimizer(self):
        groups = [{"params": self.model.head.parameters(), "lr": self.cfg.head_lr}]
        encoder = [p for p in self.model.encoder.parameters() if p.requires_grad]
        if encoder:
            groups.append({"params": encoder, "lr": self.cfg.encoder_lr})
        return torch.optim.SGD(groups, lr=self.cfg.head_lr, momentum=0.9)

    @torch.no_grad()
    def accuracy(self):
        x, y = self.valid
        return (self.model(x).argmax(1) == y).float().mean().item()

    def fit(self):
        x, y = self.train
        for epoch in range(self.cfg.epochs):
            for idx in torch.randperm(len(x)).split(self.cfg.batch_size):
                self.opt.zero_grad()
                noisy = x[idx] + self.cfg.noise * torch.randn_like(x[idx])
                F.cross_entropy(self.model(noisy), y[idx]).backward()
                self.opt.step()
            self.sched.step()
            for callback in self.callbacks:
                callback(self, epoch)


def pretrain(cfg):
    model = Spotter(cfg, 4)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(cfg.pretrain_steps):
        x, y = utterances(64, 4, cfg, 1.0)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return model.encoder


cfg = Config()
torch.manual_seed(cfg.seed)
model = Spotter(cfg, cfg.n_words)
model.encoder.load_state_dict(pretrain(cfg).state_dict())
train, valid = utterances(1000, cfg.n_words, cfg, 0.0), utterances(2000, cfg.n_words, cfg, cfg.noise)
trainer = Trainer(cfg, model, train, valid, [UnfreezeEncoder(), Report()])
trainer.fit()
print(f"final valid accuracy {trainer.accuracy():.3f}")
