"""Assignment 3: sentiment of short product reviews with a GRU.

The reviews come from a little grammar; the label follows the last opinion in the text
("terrible screen but excellent battery" is positive), so the order of the words matters.
"""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

GOOD = ["excellent", "great", "solid", "lovely", "bright"]
BAD = ["terrible", "weak", "noisy", "cheap", "dull"]
PARTS = ["screen", "battery", "camera", "case", "sound", "keyboard"]
FILLER = ["the", "a", "very", "really", "with", "this", "has", "and"]
VOCAB = {w: i + 1 for i, w in enumerate(GOOD + BAD + PARTS + FILLER + ["but"])}


def write_review(rng):
    words, mood = [], None
    for k in range(rng.choice([1, 2, 2, 3])):
        if k:
            words.append("but")
        mood = rng.random() < 0.5
        words += rng.choices(FILLER, k=rng.randint(0, 3))
        words += [rng.choice(GOOD if mood else BAD), rng.choice(PARTS)]
        words += rng.choices(FILLER + PARTS, k=rng.randint(0, 2))
    return [VOCAB[w] for w in words], int(mood)


def collate(samples):
    tokens = [torch.tensor(t) for t, _ in samples]
    lengths = torch.tensor([len(t) for t in tokens])
    labels = torch.tensor([float(y) for _, y in samples])
    return pad_sequence(tokens, batch_first=True), lengths, labels


class ReviewGRU(nn.Module):
    def __init__(self, vocab_size, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.score = nn.Linear(hidden, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        packed_states, _ = self.gru(packed)
        states, _ = pad_packed_sequence(packed_states, batch_first=True)
        summary = states[:, -1]
        return self.score(self.drop(summary)).squeeze(-1)


def accuracy(model, samples, batch_size=50):
    model.eval()
    hits = 0
    with torch.no_grad():
        for i in range(0, len(samples), batch_size):
            tokens, lengths, labels = collate(samples[i:i + batch_size])
            hits += ((model(tokens, lengths) > 0) == labels.bool()).sum().item()
    return hits / len(samples)


def main():
    rng = random.Random(1)
    torch.manual_seed(1)
    reviews = [write_review(rng) for _ in range(1000)]
    train_set, test_set = reviews[:750], reviews[750:]
    model = ReviewGRU(len(VOCAB) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(10):
        model.train()
        rng.shuffle(train_set)
        total = 0.0
        for i in range(0, len(train_set), 25):
            tokens, lengths, labels = collate(train_set[i:i + 25])
            loss = F.binary_cross_entropy_with_logits(model(tokens, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(labels)
        if epoch % 3 == 0:
            print(f"epoch {epoch}: train loss {total / len(train_set):.3f}")
    train_acc, test_acc = accuracy(model, train_set), accuracy(model, test_set)
    print(f"train accuracy {train_acc:.3f}  test accuracy {test_acc:.3f}")
    return model, train_acc, test_acc


if __name__ == "__main__":
    main()
