"""Transcribe synthetic tone sequences into letters with a small recurrent CTC recogniser."""
import string

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

ALPHABET = string.ascii_lowercase[:8]
CHAR_TO_ID = {c: i for i, c in enumerate(ALPHABET)}
ID_TO_CHAR = {i: c for c, i in CHAR_TO_ID.items()}
N_CLASSES = len(ALPHABET) + 1
N_MELS = 12


def encode(text):
    return torch.tensor([CHAR_TO_ID[c] for c in text])


class ToneSynth:
    """Each letter is a fixed spectral shape held for a few frames, with noise and short pauses."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.shapes = torch.randn(len(ALPHABET), N_MELS, generator=torch.Generator().manual_seed(5))

    def _randint(self, lo, hi):
        return torch.randint(lo, hi, (1,), generator=self.gen).item()

    def utterance(self):
        text = "".join(ALPHABET[self._randint(0, len(ALPHABET))] for _ in range(self._randint(3, 6)))
        frames = []
        for c in text:
            frames += [self.shapes[ALPHABET.index(c)]] * self._randint(2, 5)
            frames += [torch.zeros(N_MELS)] * self._randint(1, 3)
        x = torch.stack(frames)
        return x + 0.3 * torch.randn(x.shape, generator=self.gen), text

    def batch(self, n):
        feats, texts = zip(*[self.utterance() for _ in range(n)])
        return pad_sequence(list(feats), batch_first=True), torch.tensor([len(f) for f in feats]), list(texts)


class Recogniser(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.conv = nn.Conv1d(N_MELS, hidden, kernel_size=3, padding=1)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, N_CLASSES)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.head(h).log_softmax(dim=-1)


ctc = nn.CTCLoss(zero_infinity=True)


def greedy_decode(log_probs, lengths):
    out = []
    for path, n in zip(log_probs.argmax(dim=-1), lengths):
        ids = torch.unique_consecutive(path[:n]).tolist()
        out.append("".join(ID_TO_CHAR[i] for i in ids if i != ctc.blank and i in ID_TO_CHAR))
    return out


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (ca != cb))
    return row[-1]


@torch.no_grad()
def char_error_rate(model, synth, n=150):
    model.eval()
    x, lengths, texts = synth.batch(n)
    hyps = greedy_decode(model(x), lengths)
    return sum(edit_distance(h, t) for h, t in zip(hyps, texts)) / sum(map(len, texts)), hyps, texts


torch.manual_seed(3)
synth = ToneSynth(seed=11)
train_batches = [synth.batch(32) for _ in range(12)]
model = Recogniser()
optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)

for epoch in range(8):
    model.train()
    running = 0.0
    for x, lengths, texts in train_batches:
        targets = torch.cat([encode(t) for t in texts])
        target_lengths = torch.tensor([len(t) for t in texts])
        loss = ctc(model(x).transpose(0, 1), targets, lengths, target_lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch + 1}  ctc loss {running / len(train_batches):.3f}")

cer, hyps, texts = char_error_rate(model, ToneSynth(seed=77))
print(f"character error rate {cer:.3f}   e.g. {texts[0]!r} -> {hyps[0]!r}")
