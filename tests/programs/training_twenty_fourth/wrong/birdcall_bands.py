"""Species recognition from short bird calls with a learnable band-pass front end (SincNet style)."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

RATE = 8000


def make_calls(n, generator):
    """Each species whistles around its own pitch; calls differ in phase, sweep and loudness."""
    pitch = torch.tensor([820.0, 1010.0, 1900.0, 2150.0, 2950.0, 3180.0])
    label = torch.randint(len(pitch), (n,), generator=generator)
    t = torch.arange(800) / RATE
    f0 = pitch[label] + 40 * torch.randn(n, generator=generator)
    sweep = 300 * torch.randn(n, generator=generator)
    phase = 2 * math.pi * torch.rand(n, generator=generator)
    angle = 2 * math.pi * (f0[:, None] * t + 0.5 * sweep[:, None] * t**2) + phase[:, None]
    loud = 0.3 + 0.7 * torch.rand(n, 1, generator=generator)
    wave = loud * torch.sin(angle) + 0.8 * torch.randn(n, len(t), generator=generator)
    return wave, label


class SincBank(nn.Module):
    """Band-pass filters whose lower edge and width are trained."""

    def __init__(self, bands=8, taps=81):
        super().__init__()
        edges = torch.linspace(200, 3600, bands + 1)
        self.low = nn.Parameter(edges[:-1] / RATE)
        self.width = nn.Parameter((edges[1:] - edges[:-1]) / RATE)
        n = torch.arange(taps) - taps // 2
        self.register_buffer("n", n.float())
        self.register_buffer("window", torch.hamming_window(taps, periodic=False))
        self._ready = None

    def design(self):
        low = self.low.abs()
        high = (low + self.width.abs()).clamp(max=0.5)
        band = 2 * high[:, None] * torch.sinc(2 * high[:, None] * self.n)
        band = band - 2 * low[:, None] * torch.sinc(2 * low[:, None] * self.n)
        return (band * self.window).unsqueeze(1)

    def filters(self):
        if self.training:
            return self.design()
        # designing the filters is the slow part of inference, so keep them
        if self._ready is None:
            self._ready = self.design().detach()
        return self._ready

    def forward(self, wave):
        bands = F.conv1d(wave.unsqueeze(1), self.filters(), stride=2)
        return torch.log(bands.pow(2).mean(-1) + 1e-4)


class CallNet(nn.Module):
    def __init__(self, species=6, bands=8):
        super().__init__()
        self.bank = SincBank(bands)
        self.head = nn.Sequential(nn.LayerNorm(bands), nn.Linear(bands, 32), nn.ReLU(), nn.Linear(32, species))

    def forward(self, wave):
        return self.head(self.bank(wave))


@torch.no_grad()
def accuracy(model, wave, label):
    model.eval()
    hits = model(wave).argmax(1).eq(label).float().mean().item()
    model.train()
    return hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=40)
    args, _ = parser.parse_known_args()
    torch.manual_seed(11)
    g = torch.Generator().manual_seed(5)
    wave, label = make_calls(800, g)
    test_wave, test_label = make_calls(400, g)
    model = CallNet()
    optimizer = torch.optim.Adam([
        {"params": model.bank.parameters(), "lr": 1e-3},
        {"params": model.head.parameters(), "lr": 5e-3},
    ])
    for epoch in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(wave), generator=g).split(args.batch):
            loss = F.cross_entropy(model(wave[idx]), label[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch:2d}  loss {total / len(wave):.3f}  test acc {accuracy(model, test_wave, test_label):.3f}")
    return model, test_wave, test_label


if __name__ == "__main__":
    model, test_wave, test_label = main()
