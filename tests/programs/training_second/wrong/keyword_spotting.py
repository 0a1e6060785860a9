import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    rate: int = 800
    words: int = 4
    clips: int = 120
    batch: int = 24
    epochs: int = 5
    lr: float = 3e-3


def make_clips(cfg):
    t = torch.arange(cfg.rate // 4) / cfg.rate
    labels = torch.randint(0, cfg.words, (cfg.clips,))
    pitch = 40.0 + 45.0 * labels[:, None] + 4 * torch.randn(cfg.clips, 1)
    wave = torch.sin(2 * math.pi * pitch * t) * torch.hann_window(len(t))
    return wave + 0.2 * torch.randn_like(wave), labels


def spectrogram(wave):
    spec = torch.stft(wave, 64, hop_length=16, window=torch.hann_window(64), return_complex=True)
    return (spec.abs() + 1e-3).log()


class KeywordNet(nn.Module):
    def __init__(self, bins, words):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(bins, 24, 3, padding=1),
            nn.GELU(),
            nn.Conv1d(24, 24, 3, padding=1),
            nn.GELU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(24, words), nn.Softmax(dim=1))

    def forward(self, spec):
        return self.classifier(self.features(spec))


def main():
    torch.manual_seed(0)
    cfg = Settings()
    wave, labels = make_clips(cfg)
    spec = spectrogram(wave)
    spec = (spec - spec.mean()) / spec.std()
    model = KeywordNet(spec.shape[1], cfg.words)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        order = torch.randperm(cfg.clips)
        correct = 0
        for idx in order.split(cfg.batch):
            scores = model(spec[idx])
            loss = criterion(scores, labels[idx])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            correct += (scores.argmax(1) == labels[idx]).sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {correct / cfg.clips:.3f}")
    return model, spec, labels


if __name__ == "__main__":
    model, spec, labels = main()
