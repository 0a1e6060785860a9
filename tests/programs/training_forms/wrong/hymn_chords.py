import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
import torch.nn.functional as F

torch.manual_seed(61)
NOTES, CHORDS, REST = 12, 6, -100


class Harmony(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.note = nn.Embedding(NOTES, dim)
        self.read = nn.GRU(dim, 16, batch_first=True)
        self.chord = nn.Linear(16, CHORDS)

    def forward(self, notes):
        return self.chord(self.read(self.note(notes))[0])


def hymn():
    length = int(torch.randint(2, 30, ()))
    notes = torch.randint(NOTES, (length,))
    noise = torch.rand(length) < (0.05 if length > 10 else 0.6)
    chord = torch.where(noise, torch.randint(CHORDS, (length,)), notes // 2)
    return notes, chord


def collate(hymns):
    notes, chords = zip(*hymns)
    return pad_sequence(notes, batch_first=True), pad_sequence(chords, batch_first=True, padding_value=REST)


def book(size=24):
    hymns = sorted((hymn() for _ in range(size)), key=lambda h: len(h[0]))
    return [collate(hymns[i:i + 4]) for i in range(0, size, 4)]


def accumulate(net, parts):
    total = 0.0
    for notes, chords in parts:
        loss = F.cross_entropy(net(notes).flatten(0, 1), chords.flatten(), ignore_index=REST)
        loss = loss / len(parts)
        loss.backward()
        total += loss.item()
    return total


net = Harmony()
opt = torch.optim.AdamW(net.parameters(), lr=8e-3)
for step in range(40):
    opt.zero_grad()
    value = accumulate(net, book())
    opt.step()
    if step % 10 == 9:
        print(f"step {step + 1}  loss {value:.4f}")

with torch.no_grad():
    notes, chords = collate([hymn() for _ in range(200)])
    logp = F.cross_entropy(net(notes).flatten(0, 1), chords.flatten(), ignore_index=REST)
    print(f"held nll per note {logp:.4f}")
