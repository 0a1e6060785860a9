"""Tells rising from falling and flat chirps in short noisy waveforms: fixed band-pass filters and an Elman RNN."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
torch.manual_seed(SEED)
RATE = 1600
LENGTH = 640
BANDS = 12
MAX_NORM = 0.5
EPOCHS = 8


def make_chirps(n, gen):
    kind = torch.randint(0, 3, (n,), generator=gen)
    t = torch.arange(LENGTH) / RATE
    base = 150 + 150 * torch.rand(n, 1, generator=gen)
    slope = torch.tensor([300.0, -300.0, 0.0])[kind].unsqueeze(1)
    start = torch.where(kind.unsqueeze(1) == 1, base + 120, base)
    phase = 2 * math.pi * (start * t + 0.5 * slope * t**2) + 6.28 * torch.rand(n, 1, generator=gen)
    loud = torch.exp(1.2 * torch.randn(n, 1, generator=gen))  # microphones at very different distances
    return loud * (torch.sin(phase) + 0.3 * torch.randn(n, LENGTH, generator=gen)), kind


class FilterBank(nn.Module):
    """Windowed cosine and sine filters, evenly spaced; not learned."""

    def __init__(self, width=64, hop=16):
        super().__init__()
        self.hop = hop
        t = torch.arange(width) / RATE
        freqs = torch.linspace(100, 480, BANDS).unsqueeze(1)
        window = torch.hann_window(width)
        bank = torch.cat([torch.cos(2 * math.pi * freqs * t) * window, torch.sin(2 * math.pi * freqs * t) * window])
        self.weight = nn.Parameter(bank.unsqueeze(1) / 8, requires_grad=False)

    def forward(self, wave):
        re, im = F.conv1d(wave.unsqueeze(1), self.weight, stride=self.hop).chunk(2, dim=1)
        return (re**2 + im**2).sqrt()


class ChirpNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.bank = FilterBank()
        self.proj = nn.Linear(BANDS, 32)
        self.rnn = nn.RNN(32, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 3)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.2)

    def forward(self, wave):
        frames = self.bank(wave).transpose(1, 2)
        states, _ = self.rnn(torch.relu(self.proj(frames)))
        return self.out(states[:, -1])


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    gen = torch.Generator().manual_seed(SEED)
    x, y = make_chirps(1200, gen)
    x_test, y_test = make_chirps(400, gen)

    model = ChirpNet()
    # the filter bank stays as it is
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    opt = torch.optim.SGD(trainable, lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)

    history = []
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            # recurrent gradients can be large for the loud recordings
            nn.utils.clip_grad_norm_(trainable, MAX_NORM)
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        history.append(total / len(x))
        print(f"epoch {epoch}: loss {history[-1]:.4f}  test acc {accuracy(model, x_test, y_test):.3f}")
    return model, history, accuracy(model, x_test, y_test)


if __name__ == "__main__":
    model, history, test_acc = main()
    print(f"final test accuracy {test_acc:.3f}")
