"""Movie review sentiment with a word convolution and additive attention.

Reviews have very different lengths, so every batch is padded to its longest review.
"""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

random.seed(7)
torch.manual_seed(7)

PAD = 0
VOCAB = 120
GOOD_WORDS = list(range(1, 11))
BAD_WORDS = list(range(11, 21))
FILLER = list(range(21, VOCAB))


def make_review():
    label = random.randint(0, 1)
    length = random.choice([5, 6, 8, 10, 60])
    words = [random.choice(FILLER) for _ in range(length)]
    n_signal = 2
    for pos in random.sample(range(length), n_signal):
        words[pos] = random.choice(GOOD_WORDS if label else BAD_WORDS)
    return torch.tensor(words), label


def collate(batch):
    texts = pad_sequence([t for t, _ in batch], batch_first=True, padding_value=PAD)
    labels = torch.tensor([y for _, y in batch])
    return texts, labels


def batches(data, size, shuffle):
    order = list(range(len(data)))
    if shuffle:
        random.shuffle(order)
    for start in range(0, len(order), size):
        yield collate([data[i] for i in order[start:start + size]])


class AdditiveAttention(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.proj = nn.Linear(dim, hidden)
        self.query = nn.Linear(hidden, 1, bias=False)

    def forward(self, states, mask):
        scores = self.query(torch.tanh(self.proj(states))).squeeze(-1)
        scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=1)
        context = torch.bmm(weights.unsqueeze(1), states).squeeze(1)
        return context, weights


class ReviewNet(nn.Module):
    def __init__(self, emb=16, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.conv = nn.Conv1d(emb, hidden, kernel_size=3, padding=1)
        self.attention = AdditiveAttention(hidden, 16)
        self.classify = nn.Linear(hidden, 2)

    def forward(self, texts):
        mask = texts != PAD
        words = self.embed(texts).transpose(1, 2)
        states = torch.relu(self.conv(words)).transpose(1, 2)
        context, weights = self.attention(states, mask)
        return self.classify(context), weights


train_data = [make_review() for _ in range(700)]
test_data = [make_review() for _ in range(300)]

model = ReviewNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def accuracy(data, size=50):
    model.eval()
    hits = 0
    for texts, labels in batches(data, size, shuffle=False):
        logits, _ = model(texts)
        hits += (logits.argmax(dim=1) == labels).sum().item()
    return hits / len(data)


for epoch in range(6):
    model.train()
    total = 0.0
    for texts, labels in batches(train_data, 35, shuffle=True):
        logits, _ = model(texts)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(labels)
    print(f"epoch {epoch}: loss {total / len(train_data):.4f}  test accuracy {accuracy(test_data):.3f}")
