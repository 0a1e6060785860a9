"""Which bird is calling? Bidirectional GRU over spectrogram frames of synthetic chirps."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
RATE, SECONDS, FRAME = 4000, 0.4, 128
# species: (start Hz, end Hz, warble Hz, warble depth)
SPECIES = [(500, 900, 0, 0.0), (900, 500, 0, 0.0), (700, 700, 14, 120.0), (500, 900, 14, 60.0), (900, 500, 14, 60.0)]


def synthesize(n):
    """Random species, random onset, pitch and loudness, pink-ish background noise."""
    label = torch.randint(len(SPECIES), (n,))
    table = torch.tensor(SPECIES)[label]
    t = torch.arange(int(RATE * SECONDS)) / RATE
    onset = 0.12 * torch.rand(n, 1)
    length = 0.2 + 0.08 * torch.rand(n, 1)
    u = ((t - onset) / length).clamp(0, 1)
    pitch = 1 + 0.15 * torch.randn(n, 1)
    freq = pitch * (table[:, :1] + (table[:, 1:2] - table[:, :1]) * u)
    freq = freq + table[:, 3:] * torch.sin(2 * math.pi * table[:, 2:3] * t)
    phase = 2 * math.pi * torch.cumsum(freq, 1) / RATE
    wave = (0.6 + 0.4 * torch.rand(n, 1)) * torch.sin(math.pi * u) * torch.sin(phase)
    noise = torch.randn(n, len(t))
    noise = 0.25 * (noise + torch.roll(noise, 1, 1))
    return wave + noise, label


def log_spectrogram(wave):
    spec = torch.stft(wave, FRAME, FRAME // 2, window=torch.hann_window(FRAME), return_complex=True).abs()
    spec = torch.log1p(spec[:, 8:48]).transpose(1, 2)
    return (spec - spec.mean((1, 2), keepdim=True)) / spec.std((1, 2), keepdim=True)


def spec_mask(spec, width=4):
    """SpecAugment: one random band of frequencies is blanked out for the batch."""
    start = torch.randint(spec.shape[2] - width, ()).item()
    out = spec.clone()
    out[:, :, start : start + width] = 0
    return out


class CallNet(nn.Module):
    def __init__(self, bands, hidden=32):
        super().__init__()
        self.front = nn.Linear(bands, 32)
        self.rnn = nn.GRU(32, hidden, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.out = nn.Linear(2 * hidden, len(SPECIES))

    def forward(self, spec):
        _, last = self.rnn(F.relu(self.front(spec)))
        summary = last.view(len(spec), -1)
        return self.out(self.norm(summary))


@torch.no_grad()
def accuracy(model, spec, label):
    model.eval()
    right = sum((model(s).argmax(-1) == y).sum().item() for s, y in zip(spec.split(64), label.split(64)))
    return right / len(label)


wave, label = synthesize(1280)
spec = log_spectrogram(wave)
wave, test_label = synthesize(320)
test_spec = log_spectrogram(wave)

model = CallNet(spec.shape[2])
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
EPOCHS, BATCH = 8, 64
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=EPOCHS * len(spec) // BATCH)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(spec)).split(BATCH):
        loss = F.cross_entropy(model(spec_mask(spec[idx])), label[idx], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1}  loss {total / len(spec):.3f}  test accuracy {accuracy(model, test_spec, test_label):.3f}")
