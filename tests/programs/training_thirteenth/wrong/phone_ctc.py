"""Phone recognition with CTC on synthetic speech of slow and fast speakers."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(29)
PHONES, BANDS, BLANK = 12, 16, 0


def speak(phones, speaking_rate, spectra, gen):
    """Each phone lasts for a few frames around its spectrum; neighbouring phones blend."""
    low, high = speaking_rate
    durations = torch.randint(low, high + 1, (len(phones),), generator=gen)
    frames = spectra[phones].repeat_interleave(durations, dim=0)
    blended = 0.8 * frames + 0.2 * frames.roll(1, dims=0)
    return blended + 0.25 * torch.randn(blended.shape, generator=gen)


def make_set(n, spectra, gen):
    rates = {"slow": (7, 10), "fast": (2, 4)}
    items = []
    for i in range(n):
        style = "slow" if i % 5 < 2 else "fast"
        phones = torch.randint(1, PHONES + 1, (int(torch.randint(6, 13, (1,), generator=gen)),), generator=gen)
        items.append((speak(phones, rates[style], spectra, gen), phones, style))
    return items


class PhoneRecognizer(nn.Module):
    STRIDES = (2, 2)

    def __init__(self, hidden=48):
        super().__init__()
        first, second = self.STRIDES
        self.conv1 = nn.Conv1d(BANDS, hidden, 5, stride=first, padding=2)
        self.conv2 = nn.Conv1d(hidden, hidden, 5, stride=second, padding=2)
        self.norm = nn.LayerNorm(hidden)
        self.rnn = nn.GRU(hidden, 32, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, PHONES + 1)

    def output_lengths(self, lengths):
        for stride in self.STRIDES:
            lengths = (lengths - 1) // stride + 1
        return lengths

    def forward(self, audio, lengths):
        h = F.relu(self.conv1(audio.transpose(1, 2)))
        h = F.relu(self.conv2(h)).transpose(1, 2)
        h = self.norm(h)
        out_lengths = self.output_lengths(lengths)
        packed = nn.utils.rnn.pack_padded_sequence(h, out_lengths, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return F.log_softmax(self.out(h), dim=-1), out_lengths


def collate(items):
    audio = pad_sequence([a for a, _, _ in items], batch_first=True)
    lengths = torch.tensor([len(a) for a, _, _ in items])
    targets = torch.cat([p for _, p, _ in items])
    return audio, lengths, targets, torch.tensor([len(p) for _, p, _ in items])


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


@torch.no_grad()
def phone_error_rate(model, items):
    model.eval()
    audio, lengths, _, _ = collate(items)
    log_probs, out_lengths = model(audio, lengths)
    errors = total = 0
    for best, n, (_, phones, _) in zip(log_probs.argmax(-1), out_lengths, items):
        path = torch.unique_consecutive(best[:n])
        errors += edit_distance(path[path != BLANK].tolist(), phones.tolist())
        total += len(phones)
    return errors / total


gen = torch.Generator().manual_seed(4)
spectra = torch.randn(PHONES + 1, BANDS, generator=gen)
train_set, test_set = make_set(330, spectra, gen), make_set(100, spectra, gen)
model = PhoneRecognizer()
ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(10):
    model.train()
    running, batches = 0.0, torch.randperm(len(train_set)).split(32)
    for idx in batches:
        audio, lengths, targets, target_lengths = collate([train_set[i] for i in idx])
        log_probs, out_lengths = model(audio, lengths)
        loss = ctc(log_probs.transpose(0, 1), targets, out_lengths, target_lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.item()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: loss {running / len(batches):.3f}")
print(f"phone error rate on test: {phone_error_rate(model, test_set):.3f}")
