"""Keyword spotting on synthetic spoken words: log spectrograms, a small convolutional net, an averaged copy for testing."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

RATE, SAMPLES, WORDS = 4000, 1600, 8
generator = torch.Generator().manual_seed(1)
formants = 300 + 1400 * torch.rand(WORDS, 3, 2, generator=generator)   # word x syllable x formant, in Hz


def speak(word):
    n = len(word)
    t = torch.arange(SAMPLES) / RATE
    voice = 0.85 + 0.3 * torch.rand(n, 1, 1)
    syllable = torch.clamp((3 * t / t[-1]).long(), max=2)
    pitch = (formants[word] * voice)[:, syllable]                       # n x samples x formant
    phase = 2 * math.pi * torch.cumsum(pitch, 1) / RATE
    loud = 0.3 + torch.rand(n, 1)
    wave = loud * phase.sin().sum(-1) * torch.sin(math.pi * 3 * t).abs()
    return wave + 0.6 * torch.randn(n, SAMPLES)


class LogSpectrum(nn.Module):
    def __init__(self, size=128, hop=64):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))

    def forward(self, wave):
        spec = torch.stft(wave, self.size, self.hop, window=self.window, return_complex=True)
        return torch.log(spec.abs().square() + 1e-3).unsqueeze(1)


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class Spotter(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.front = LogSpectrum()
        self.norm = nn.BatchNorm2d(1)
        self.body = nn.Sequential(conv_block(1, width), conv_block(width, 2 * width), conv_block(2 * width, 2 * width))
        self.head = nn.Linear(2 * width * 8, WORDS)

    def forward(self, wave):
        x = self.body(self.norm(self.front(wave)))
        return self.head(x.mean(-1).flatten(1))


class Average:
    """Exponential average of a model's weights, with a warm-up of the decay."""

    def __init__(self, model, decay):
        self.decay, self.updates = decay, 0
        self.model = copy.deepcopy(model).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, live):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for slow, fast in zip(self.model.parameters(), live.parameters(), strict=True):
            slow.lerp_(fast, 1 - decay)


@torch.no_grad()
def error_rate(model, batches=4):
    was_training = model.training
    model.eval()
    wrong = total = 0
    for _ in range(batches):
        word = torch.randint(0, WORDS, (100,))
        wrong += (model(speak(word)).argmax(1) != word).sum().item()
        total += len(word)
    model.train(was_training)
    return wrong / total


model = Spotter()
averaged = Average(model, decay=0.95)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
STEPS = 90
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=STEPS)

for step in range(1, STEPS + 1):
    word = torch.randint(0, WORDS, (32,))
    loss = F.cross_entropy(model(speak(word)), word, label_smoothing=0.05)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    averaged.update(model)
    if step % 30 == 0:
        print(f"step {step:3d}  loss {loss.item():.3f}  error of the average {error_rate(averaged.model):.1%}")

result = error_rate(averaged.model, batches=8)
print(f"final error of the averaged spotter {result:.1%}")
