"""Keyword spotting on short spectrograms: a convolutional recogniser trained with time and frequency masking."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
WORDS, BINS, FRAMES = 8, 20, 36


def synthesize(count, patterns):
    labels = torch.randint(0, WORDS, (count,))
    spectra = 1.0 * torch.randn(count, BINS, FRAMES)
    for i, y in enumerate(labels.tolist()):
        start = int(torch.randint(0, FRAMES - patterns.size(-1), (1,)))
        spectra[i, :, start:start + patterns.size(-1)] += patterns[y]
    return spectra, labels


class SpecAugment:
    """Blanks random bands of time and frequency."""

    def __init__(self, bands=1, time=4, freq=2):
        self.bands, self.time, self.freq = bands, time, freq

    def __call__(self, spectrum):
        for _ in range(self.bands):
            t = int(torch.randint(0, FRAMES - self.time + 1, (1,)))
            f = int(torch.randint(0, BINS - self.freq + 1, (1,)))
            spectrum[:, t:t + self.time] = 0.0
            spectrum[f:f + self.freq, :] = 0.0
        return spectrum


class Utterances(Dataset):
    def __init__(self, spectra, labels, transform=None):
        mean, std = spectra.mean(), spectra.std()
        self.spectra, self.labels = (spectra - mean) / std, labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        spectrum = self.spectra[index]
        if self.transform is not None:
            spectrum = self.transform(spectrum)
        return spectrum, self.labels[index]


class Recogniser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv1 = nn.Conv1d(BINS, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.norm = nn.BatchNorm1d(width)
        self.attend, self.classify = nn.Linear(width, 1), nn.Linear(width, WORDS)

    def forward(self, spectra):
        h = F.relu(self.norm(self.conv2(F.relu(self.conv1(spectra))))).transpose(1, 2)
        weight = self.attend(h).softmax(dim=1)
        return self.classify((weight * h).sum(dim=1))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = [(model(x).argmax(1) == y).float() for x, y in loader]
    return torch.cat(hits).mean().item()


def train(model, loader, valid, epochs=6):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for spectra, labels in loader:
            loss = F.cross_entropy(model(spectra), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        schedule.step()
        if epoch % 2 == 1:
            print(f"epoch {epoch} loss {total / len(loader.dataset):.3f} valid {accuracy(model, valid):.3f}")


patterns = 0.9 * torch.randn(WORDS, BINS, 12)
train_set = Utterances(*synthesize(512, patterns), transform=SpecAugment())
valid_set = Utterances(*synthesize(384, patterns))
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=128)
model = Recogniser()
train(model, train_loader, valid_loader)
print(f"{sum(p.numel() for p in model.parameters())} parameters, valid accuracy {accuracy(model, valid_loader):.3f}")
