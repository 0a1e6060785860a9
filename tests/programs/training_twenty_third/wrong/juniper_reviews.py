"""Homework 4: a small transformer encoder for review sentiment, blocks written from scratch.

The corpus is synthetic: filler words, one opinion word in the first half of the review (what the reviewer had hoped
for) and one in the second half (the verdict, which is the label).
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
VOCAB, LENGTH = 30, 12
GOOD, BAD = range(1, 5), range(5, 9)


def make_reviews(n):
    tokens = torch.randint(9, VOCAB, (n, LENGTH))
    labels = torch.randint(0, 2, (n,))
    for i in range(n):
        hoped = int(torch.randint(0, 2, (1,)))
        for start, opinion in ((0, hoped), (LENGTH // 2, int(labels[i]))):
            words = GOOD if opinion else BAD
            tokens[i, start + int(torch.randint(0, LENGTH // 2, (1,)))] = words[int(torch.randint(0, len(words), (1,)))]
    return tokens, labels


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=512):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // self.heads), dim=-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class Classifier(nn.Module):
    def __init__(self, d=32, heads=4, depth=2):
        super().__init__()
        self.d = d
        self.embed = nn.Embedding(VOCAB, d)
        self.position = PositionalEncoding(d)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 2)

    def forward(self, tokens):
        x = self.position(self.embed(tokens) * math.sqrt(self.d) * 0.3)
        return self.head(self.norm(self.blocks(x)).mean(1))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    hits = sum((model(xb).argmax(-1) == yb).sum().item() for xb, yb in zip(x.split(64), y.split(64)))
    return hits / len(y)


def main():
    x, y = make_reviews(2000)
    xv, yv = make_reviews(500)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch}  loss {total / len(x):.3f}  val acc {accuracy(model, xv, yv):.3f}")
    return model, xv, yv


if __name__ == "__main__":
    model, xv, yv = main()
