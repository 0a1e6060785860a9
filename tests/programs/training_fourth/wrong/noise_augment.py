"""Classify short vowel sounds; random gain and noise as augmentation."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

RATE, LENGTH = 2000, 128
FORMANTS = torch.tensor([[250.0, 600.0], [250.0, 750.0], [350.0, 600.0], [350.0, 750.0]])


def synthesize(label):
    t = torch.arange(LENGTH) / RATE
    f = FORMANTS[label] * (1 + 0.03 * torch.randn(2))
    phase = 2 * math.pi * torch.rand(2)
    wave = torch.sin(2 * math.pi * f[0] * t + phase[0]) + 0.6 * torch.sin(2 * math.pi * f[1] * t + phase[1])
    return wave + 0.3 * torch.randn(LENGTH)


class Vowels(Dataset):
    def __init__(self, n, augment=False):
        self.labels = torch.randint(0, len(FORMANTS), (n,))
        self.waves = torch.stack([synthesize(k) for k in self.labels.tolist()])
        self.augment = augment

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = self.waves[index]
        if self.augment:
            wave *= 0.8 + 0.4 * torch.rand(1)
            wave += 0.6 * torch.randn(LENGTH)
        return wave, self.labels[index]


class VowelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(LENGTH))
        self.net = nn.Sequential(nn.Linear(LENGTH // 2 + 1, 48), nn.ReLU(), nn.Linear(48, len(FORMANTS)))

    def forward(self, wave):
        spectrum = torch.fft.rfft(wave * self.window).abs()
        spectrum = spectrum / spectrum.mean(1, keepdim=True)
        return self.net(spectrum)


@torch.no_grad()
def accuracy(model, dataset):
    model.eval()
    return (model(dataset.waves).argmax(1) == dataset.labels).float().mean().item()


def main(epochs=25):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, test = Vowels(300, augment=True), Vowels(500)
    original = train.waves.clone()
    loader = DataLoader(train, batch_size=30, shuffle=True)
    model = VowelNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        for wave, label in loader:
            loss = F.cross_entropy(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} loss {loss.item():.3f} test accuracy {accuracy(model, test):.3f}")
    final = accuracy(model, test)
    print(f"final test accuracy {final:.3f}, last training loss {loss.item():.3f}")
    return train, original, final, loss.item()


if __name__ == "__main__":
    train, original, final, last_loss = main()
