"""Slot tagging for short appointment requests (synthetic), BiLSTM over padded batches."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(11)
rng = np.random.default_rng(11)

TAGS = ["O", "DAY", "TIME", "DOCTOR", "REASON"]
PAD = 0
VOCAB = 121
# word ids 1..40 are fillers; the rest are content words whose tag depends on the trigger before them
FILLER = np.arange(1, 41)
CONTENT = np.arange(41, 117)
TRIGGER = {117: 1, 118: 2, 119: 3, 120: 4}


def make_sentence():
    length = int(np.clip(rng.geometric(0.13) + 3, 4, 48))
    words, tags = [], []
    while len(words) < length:
        if rng.random() < 0.45:
            trigger = int(rng.choice(list(TRIGGER)))
            span = int(rng.integers(1, 4))
            words.append(trigger)
            tags.append(0)
            for _ in range(span):
                words.append(int(rng.choice(CONTENT)))
                tags.append(TRIGGER[trigger])
        else:
            words.append(int(rng.choice(FILLER if rng.random() < 0.7 else CONTENT)))
            tags.append(0)
    return words[:length], tags[:length]


def collate(sentences):
    width = max(len(w) for w, _ in sentences)
    words = torch.zeros(len(sentences), width, dtype=torch.long)
    tags = torch.zeros(len(sentences), width, dtype=torch.long)
    for i, (w, t) in enumerate(sentences):
        words[i, : len(w)] = torch.tensor(w)
        tags[i, : len(t)] = torch.tensor(t)
    return words, tags, (words != PAD).float()


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.drop = nn.Dropout(0.1)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words):
        lengths = (words != PAD).sum(1)
        packed = pack_padded_sequence(self.drop(self.embed(words)), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(states)


def tagging_loss(logits, tags, mask):
    token_loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
    return (token_loss * mask.flatten()).sum() / mask.sum()


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    hit = found = gold = 0
    for words, tags, mask in batches:
        pred = model(words).argmax(-1)
        real = mask.bool()
        hit += ((pred == tags) & (tags > 0) & real).sum().item()
        found += ((pred > 0) & real).sum().item()
        gold += ((tags > 0) & real).sum().item()
    return 2 * hit / max(found + gold, 1)


train = [make_sentence() for _ in range(960)]
dev = [make_sentence() for _ in range(256)]
dev_batches = [collate(dev[i : i + 64]) for i in range(0, len(dev), 64)]

model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.9)
EPOCHS, BATCH = 6, 32
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(train) // BATCH)

for epoch in range(EPOCHS):
    model.train()
    order = rng.permutation(len(train))
    total, steps = 0.0, 0
    for start in range(0, len(order), BATCH):
        words, tags, mask = collate([train[i] for i in order[start : start + BATCH]])
        loss = tagging_loss(model(words), tags, mask)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        total, steps = total + loss.item(), steps + 1
    print(f"epoch {epoch + 1}  loss {total / steps:.4f}  dev token F1 {evaluate(model, dev_batches):.3f}")
