"""Frame-wise voicing detector on clips of different length.

The filterbank front end is fitted on cleaner clips first; a recurrent tagger is
then trained on noisy clips on top of it.
"""
import math
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(12)

HOP = 32
CHANNELS = 16
ACCUMULATE = 4


def make_clip(noise):
    frames = int(torch.randint(20, 80, (1,)))
    voiced = (torch.rand(frames // 8 + 1) < 0.5).float().repeat_interleave(8)[:frames]
    t = torch.arange(frames * HOP) / 1000.0
    tone = torch.sin(2 * math.pi * (90 + 60 * torch.rand(1)) * t)
    wave = tone * voiced.repeat_interleave(HOP) + noise * torch.randn(frames * HOP)
    return wave, voiced


class FrontEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, CHANNELS, HOP, stride=HOP)
        self.norm = nn.BatchNorm1d(CHANNELS)

    def forward(self, wave):
        return F.elu(self.norm(self.conv(wave.unsqueeze(1)))).transpose(1, 2)


class Tagger(nn.Module):
    def __init__(self, front):
        super().__init__()
        self.front = front.requires_grad_(False)
        self.rnn = nn.GRU(CHANNELS, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 1)

    def train(self, mode=True):
        super().train(mode)
        self.front.eval()
        return self

    def forward(self, wave, lengths):
        with torch.no_grad():
            feats = self.front(wave)
        packed = pack_padded_sequence(feats, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(hidden).squeeze(-1)


def collate(clips):
    lengths = torch.tensor([len(v) for _, v in clips])
    wave = pad_sequence([w for w, _ in clips], batch_first=True)
    voiced = pad_sequence([v for _, v in clips], batch_first=True)
    return wave, voiced, lengths, torch.arange(lengths.max()) < lengths[:, None]


def fit_front_end(steps=80):
    front, probe = FrontEnd(), nn.Linear(CHANNELS, 1)
    optimizer = torch.optim.Adam([*front.parameters(), *probe.parameters()], lr=5e-3)
    for _ in range(steps):
        clips = [make_clip(noise=0.4) for _ in range(8)]
        wave, voiced = torch.cat([w for w, _ in clips])[None], torch.cat([v for _, v in clips])[None]
        loss = F.binary_cross_entropy_with_logits(probe(front(wave)).squeeze(-1), voiced)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return front, loss.item()


@torch.no_grad()
def frame_accuracy(model, clips):
    wave, voiced, lengths, mask = collate(clips)
    model.eval()
    return ((model(wave, lengths) > 0) == (voiced > 0.5))[mask].float().mean().item()


def main(epochs=4):
    front, front_loss = fit_front_end()
    print(f"front end loss {front_loss:.3f}")
    train = sorted((make_clip(noise=1.2) for _ in range(192)), key=lambda c: len(c[1]))
    test = [make_clip(noise=1.2) for _ in range(100)]
    micro = [collate(train[i:i + 8]) for i in range(0, len(train), 8)]
    model = Tagger(front)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=5e-3)

    for epoch in range(1, epochs + 1):
        model.train()
        for group in torch.randperm(len(micro)).split(ACCUMULATE):
            frames = sum(int(micro[i][2].sum()) for i in group)
            optimizer.zero_grad()
            for i in group:
                wave, voiced, lengths, mask = micro[i]
                bce = F.binary_cross_entropy_with_logits(model(wave, lengths)[mask], voiced[mask], reduction="sum")
                (bce / frames).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}  test frame accuracy {frame_accuracy(model, test):.3f}")
    return model


if __name__ == "__main__":
    model = main()
