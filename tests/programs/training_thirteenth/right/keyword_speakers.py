"""Keyword spotting that shall not depend on the speaker.

A front end is pretrained on many speakers and then kept as it is, statistics of its normalisation included.
An encoder on top learns keywords from few speakers, against a speaker classifier with reversed gradient.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
WORDS, SPEAKERS, BANDS, FRAMES = 8, 6, 20, 24


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class FrontEnd(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.locked = False
        self.net = nn.Sequential(
            nn.Conv1d(BANDS, channels, 5, stride=2, padding=2), nn.BatchNorm1d(channels), nn.ReLU(),
            nn.Conv1d(channels, channels, 5, stride=2, padding=2), nn.BatchNorm1d(channels), nn.ReLU())

    def lock(self):
        self.locked = True
        return self.requires_grad_(False).eval()

    def train(self, mode=True):
        return super().train(mode and not self.locked)

    def forward(self, audio):
        return self.net(audio)


class KeywordNet(nn.Module):
    def __init__(self, front_end, classes):
        super().__init__()
        self.front_end = front_end
        self.encoder = nn.Sequential(nn.Dropout(0.2), nn.Linear(32 * FRAMES // 4, 48), nn.ReLU())
        self.keyword = nn.Linear(48, classes)
        self.speaker = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, SPEAKERS))

    def forward(self, audio, strength=0.0):
        h = self.encoder(self.front_end(audio).flatten(1))
        return self.keyword(h), self.speaker(Reverse.apply(h, strength))


def make_audio(n, n_speakers, templates, gen, tied=0.0):
    """Keyword template plus a colouring by the speaker; `tied` is how often a speaker says favourite words."""
    voices = 1.3 * torch.randn(n_speakers, BANDS, 1, generator=gen)
    speaker = torch.randint(0, n_speakers, (n,), generator=gen)
    word = torch.randint(0, len(templates), (n,), generator=gen)
    word = torch.where(torch.rand(n, generator=gen) < tied, speaker % len(templates), word)
    audio = templates[word] + voices[speaker] + 1.2 * torch.randn(n, BANDS, FRAMES, generator=gen)
    return audio, word, speaker


@torch.no_grad()
def accuracy(model, audio, word):
    model.eval()
    return (model(audio)[0].argmax(1) == word).float().mean().item()


def pretrain(templates, gen, steps=120):
    front_end = FrontEnd()
    model = KeywordNet(front_end, len(templates))
    audio, word, _ = make_audio(3000, 60, templates, gen)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        pick = torch.randint(len(audio), (64,))
        loss = F.cross_entropy(model(audio[pick])[0], word[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretrained to loss {loss.item():.3f}")
    return front_end.lock()


gen = torch.Generator().manual_seed(9)
front_end = pretrain(torch.randn(12, BANDS, FRAMES, generator=gen) * 0.5, gen)
templates = torch.randn(WORDS, BANDS, FRAMES, generator=gen) * 0.5
audio, word, speaker = make_audio(700, SPEAKERS, templates, gen, tied=0.5)
new_audio, new_word, _ = make_audio(800, 50, templates, gen)

model = KeywordNet(front_end, WORDS)
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
for step in range(300):
    model.train()
    strength = 0.5 * (2 / (1 + math.exp(-8 * step / 300)) - 1)
    pick = torch.randint(len(audio), (64,))
    keyword_logits, speaker_logits = model(audio[pick], strength)
    keyword_loss = F.cross_entropy(keyword_logits, word[pick])
    speaker_loss = F.cross_entropy(speaker_logits, speaker[pick])
    optimizer.zero_grad()
    (keyword_loss + speaker_loss).backward()
    optimizer.step()
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}: keyword {keyword_loss.item():.3f} speaker {speaker_loss.item():.3f}")
print(f"accuracy on new speakers {accuracy(model, new_audio, new_word):.3f}")
