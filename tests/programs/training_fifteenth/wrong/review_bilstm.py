"""Sentence polarity with a bidirectional LSTM (port of a Keras Bidirectional(LSTM(return_state=True)) model).

The toy language has positive and negative words, a negator that flips the next word, and neutral filler.
The label of a sentence is the sign of its total polarity.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(21)

PAD, NEG = 0, 1
POSITIVE = range(2, 12)
NEGATIVE = range(12, 22)
VOCAB = 60
MAX_LEN = 14


def make_sentences(n):
    tokens = torch.full((n, MAX_LEN), PAD)
    lengths = torch.randint(5, MAX_LEN + 1, (n,))
    labels = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        score = 0
        while score == 0:
            words = torch.randint(22, VOCAB, (int(lengths[i]),))
            loaded = torch.rand(len(words)) < 0.45
            polar = torch.randint(2, 22, (len(words),))
            words = torch.where(loaded, polar, words)
            words[torch.rand(len(words)) < 0.12] = NEG
            flip, score = 1, 0
            for w in words.tolist():
                if w == NEG:
                    flip = -1
                    continue
                score += flip * ((w in POSITIVE) - (w in NEGATIVE))
                flip = 1
        tokens[i, :len(words)] = words
        labels[i] = int(score > 0)
    return tokens, lengths, labels


class PolarityModel(nn.Module):
    def __init__(self, embed=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, embed, padding_idx=PAD)
        self.rnn = nn.LSTM(embed, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(2 * hidden, 2)

    def encode(self, tokens, lengths):
        """Final forward state and final backward state of every sentence, side by side."""
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (h_n, _) = self.rnn(packed)
        return h_n.reshape(tokens.shape[0], -1)

    def forward(self, tokens, lengths):
        return self.head(self.drop(self.encode(tokens, lengths)))


train = make_sentences(1500)
test = make_sentences(500)

model = PolarityModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-3)
batch = 50
epochs = 7
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=epochs * (len(train[0]) // batch))

for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(train[0]))
    total = 0.0
    for idx in order.split(batch):
        tokens, lengths, labels = (t[idx] for t in train)
        loss = F.cross_entropy(model(tokens, lengths), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch + 1}: train loss {total / len(order):.4f}")

model.eval()
with torch.no_grad():
    logits = torch.cat([model(t, l) for t, l in zip(test[0].split(batch), test[1].split(batch))])
accuracy = (logits.argmax(1) == test[2]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
