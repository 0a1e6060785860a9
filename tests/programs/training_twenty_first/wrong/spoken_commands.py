"""Spoken-command recognition: a GRU over variable-length filterbank features."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)
rng = np.random.default_rng(21)

N_MELS, N_WORDS = 20, 6
WORDS = ["yes", "no", "stop", "go", "left", "right"]
# every word is a sequence of three spectral shapes ("phones")
PHONES = rng.normal(size=(8, N_MELS)).astype(np.float32)
SPELLING = [(0, 1, 2), (2, 1, 0), (3, 4, 5), (5, 4, 3), (6, 0, 7), (7, 0, 6)]


class Commands(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            word = int(rng.integers(N_WORDS))
            durations = rng.integers(3, 12, size=3)
            frames = np.concatenate(
                [np.repeat(PHONES[p][None], d, axis=0) for p, d in zip(SPELLING[word], durations)]
            )
            frames = frames + 0.5 * rng.normal(size=frames.shape)
            self.items.append((torch.tensor(frames, dtype=torch.float32), word))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    feats, words = zip(*batch)
    lengths = torch.tensor([len(f) for f in feats])
    return pad_sequence(feats, batch_first=True), lengths, torch.tensor(words)


class CommandNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.norm = nn.LayerNorm(N_MELS)
        self.proj = nn.Linear(N_MELS, 32)
        self.rnn = nn.GRU(32, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(2 * hidden, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, N_WORDS))

    def forward(self, feats, lengths):
        # packing needs the utterances from the longest to the shortest
        lengths, order = lengths.sort(descending=True)
        x = F.relu(self.proj(self.norm(feats[order])))
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        _, h = self.rnn(packed)
        h = torch.cat([h[0], h[1]], dim=-1)
        return self.head(h)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = total = 0
    for feats, lengths, words in loader:
        hits += (model(feats, lengths).argmax(-1) == words).sum().item()
        total += len(words)
    model.train()
    return hits / total


train_loader = DataLoader(Commands(800), batch_size=32, shuffle=True, collate_fn=collate)
test_loader = DataLoader(Commands(200), batch_size=50, collate_fn=collate)

model = CommandNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
EPOCHS = 6
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=EPOCHS * len(train_loader))

for epoch in range(EPOCHS):
    running = 0.0
    for feats, lengths, words in train_loader:
        loss = F.cross_entropy(model(feats, lengths), words)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        running += loss.item()
    accuracy = evaluate(model, test_loader)
    print(f"epoch {epoch}  loss {running / len(train_loader):.3f}  test accuracy {accuracy:.3f}")
