"""Tutorial rewrite: a tiny ALBERT-like masked language model on a synthetic "river" language.

Encoder written from scratch, (time, batch, features) everywhere.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

MASK, FIRST, WORDS, TIME = 0, 1, 12, 12
VOCAB = FIRST + WORDS
IGNORE = -100


def river_sentences(n, generator):
    """Two interleaved counters: word t follows from word t-2, with a stride that the sentence keeps."""
    start = torch.randint(0, WORDS, (2, n), generator=generator)
    stride = torch.randint(1, 3, (n,), generator=generator)
    t = torch.arange(TIME)
    words = (start[t % 2] + (t // 2)[:, None] * stride) % WORDS
    return words + FIRST


def corrupt(tokens, generator, rate=0.2):
    """BERT recipe: of the chosen positions 80% become [MASK], 10% a random word, 10% stay as they are."""
    chosen = torch.rand(tokens.shape, generator=generator) < rate
    labels = tokens.masked_fill(~chosen, IGNORE)
    kind = torch.rand(tokens.shape, generator=generator)
    inputs = tokens.clone()
    inputs[chosen & (kind < 0.8)] = MASK
    swap = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[swap] = torch.randint(FIRST, VOCAB, (int(swap.sum()),), generator=generator)
    return inputs, labels


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=64):
        super().__init__()
        position = torch.arange(max_len)[:, None]
        rate = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, 1, d)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class EncoderBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.mix = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        t, b, d = x.shape
        qkv = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (z.reshape(t, b * self.heads, d // self.heads).transpose(0, 1) for z in qkv)
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d // self.heads), -1)
        x = x + self.mix((weights @ v).transpose(0, 1).reshape(t, b, d))
        return x + self.ff(self.norm2(x))


class TinyAlbert(nn.Module):
    def __init__(self, d=48, heads=4, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d)
        nn.init.normal_(self.embed.weight, std=d ** -0.5)
        self.position = PositionalEncoding(d)
        self.blocks = nn.ModuleList([EncoderBlock(d, heads)] * depth)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, VOCAB)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.position(self.embed(tokens) * math.sqrt(self.embed.embedding_dim))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(51)
    g = torch.Generator().manual_seed(52)
    model = TinyAlbert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    held_in, held_labels = corrupt(river_sentences(200, g), g)
    for step in range(1, 241):
        inputs, labels = corrupt(river_sentences(32, g), g)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        if step % 60 == 0:
            with torch.no_grad():
                hit = (model(held_in).argmax(-1) == held_labels)[held_labels != IGNORE].float().mean().item()
            print(f"step {step}  loss {loss.item():.3f}  cloze accuracy {hit:.3f}")
    return model, optimizer, held_in, held_labels


if __name__ == "__main__":
    model, optimizer, held_in, held_labels = main()
