"""Self-supervised speech features: a student predicts a slow teacher's layers at masked frames."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

BINS, FRAMES, PHONES, WIDTH = 16, 24, 8, 32


def make_speech(spectra, count, generator):
    """Each utterance holds a few phones for six frames each."""
    phones = torch.randint(0, PHONES, (count, FRAMES // 6), generator=generator).repeat_interleave(6, dim=1)
    return spectra[phones] + 1.6 * torch.randn(count, FRAMES, BINS, generator=generator), phones


class Block(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, heads, dropout=0.1, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(self.second(x))


class Encoder(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.place = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=4)
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x):
        x = x + F.gelu(self.place(x.transpose(1, 2))).transpose(1, 2)
        layers = []
        for block in self.blocks:
            x = block(x)
            layers.append(x)
        return layers


class MaskedPrediction(nn.Module):
    def __init__(self):
        super().__init__()
        self.entry = nn.Sequential(nn.Linear(BINS, WIDTH), nn.LayerNorm(WIDTH))
        self.mask_vector = nn.Parameter(torch.empty(WIDTH).uniform_(-1, 1))
        self.encoder = Encoder()
        self.head = nn.Linear(WIDTH, WIDTH)
        self.teacher = copy.deepcopy(self.encoder).requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    @torch.no_grad()
    def targets(self, x):
        layers = [F.instance_norm(y.transpose(1, 2)).transpose(1, 2) for y in self.teacher(x)]
        return sum(layers) / len(layers)

    def forward(self, frames, mask):
        x = self.entry(frames)
        targets = self.targets(x)
        masked = torch.where(mask.unsqueeze(-1), self.mask_vector, x)
        predicted = self.head(self.encoder(masked)[-1])
        return F.smooth_l1_loss(predicted[mask], targets[mask]), targets

    @torch.no_grad()
    def advance_teacher(self, decay):
        for slow, fast in zip(self.teacher.parameters(), self.encoder.parameters()):
            slow.mul_(decay).add_(fast, alpha=1 - decay)

    @torch.no_grad()
    def features(self, frames):
        return self.encoder(self.entry(frames))[-1]


def span_mask(count, generator, span=4):
    start = torch.randint(0, FRAMES - span, (count, 2, 1), generator=generator)
    place = torch.arange(FRAMES)
    return ((place >= start) & (place < start + span)).any(dim=1)


def pretrain(model, spectra, generator, steps, batch=16):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    model.train()
    for step in range(steps):
        frames, _ = make_speech(spectra, batch, generator)
        loss, targets = model(frames, span_mask(batch, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.advance_teacher(decay=0.98 + 0.019 * min(1.0, step / 100))
        if (step + 1) % 35 == 0:
            spread = targets.std(dim=(0, 1)).mean().item()
            print(f"step {step + 1:3d}  loss {loss.item():.4f}  spread of the targets {spread:.3f}")


def probe(model, spectra, generator, steps=100):
    """A linear read-out of the phones from the features."""
    model.eval()
    frames, phones = make_speech(spectra, 128, generator)
    features = F.layer_norm(model.features(frames), (WIDTH,)).flatten(0, 1)
    labels = phones.flatten()
    readout = nn.Linear(WIDTH, PHONES)
    optimizer = torch.optim.Adam(readout.parameters(), lr=3e-2)
    half = len(labels) // 2
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(readout(features[:half]), labels[:half]).backward()
        optimizer.step()
    return (readout(features[half:]).argmax(dim=1) == labels[half:]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(9)
    spectra = torch.randn(PHONES, BINS, generator=generator)
    model = MaskedPrediction()
    print(f"phone accuracy before: {probe(model, spectra, generator):.3f}")
    pretrain(model, spectra, generator, steps=140)
    print(f"phone accuracy after: {probe(model, spectra, generator):.3f}")
