"""Grapheme-to-phoneme seq2seq for a speech front end: GRU encoder, attention decoder, one optimizer for each."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)

LETTERS, SOUNDS, LENGTH, HIDDEN = 12, 24, 6, 48
SOS = SOUNDS  # start symbol of the decoder


def pronounce(word):
    """A letter sounds different when the letter before it is a vowel (0..3)."""
    return [c + LETTERS * int(i > 0 and word[i - 1] < 4) for i, c in enumerate(word)]


def batch(n):
    words = [[random.randrange(LETTERS) for _ in range(LENGTH)] for _ in range(n)]
    return torch.tensor(words), torch.tensor([pronounce(w) for w in words])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, 24)
        self.gru = nn.GRU(24, HIDDEN, batch_first=True)

    def forward(self, x):
        return self.gru(self.embed(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SOUNDS + 1, 24)
        self.cell = nn.GRUCell(24, HIDDEN)
        self.out = nn.Linear(2 * HIDDEN, SOUNDS)

    def step(self, token, state, memory):
        state = self.cell(self.embed(token), state)
        attention = (memory @ state.unsqueeze(-1)).squeeze(-1).softmax(-1)
        context = (attention.unsqueeze(-1) * memory).sum(1)
        return self.out(torch.cat([state, context], -1)), state


def train_step(encoder, decoder, encoder_optimizer, decoder_optimizer, x, y, forcing):
    decoder_optimizer.zero_grad()
    memory, last = encoder(x)
    state = last[0]
    token = torch.full((len(x),), SOS)
    loss = 0.0
    for t in range(LENGTH):
        logits, state = decoder.step(token, state, memory)
        loss = loss + F.cross_entropy(logits, y[:, t])
        token = y[:, t] if random.random() < forcing else logits.argmax(-1)
    loss = loss / LENGTH
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


@torch.no_grad()
def symbol_error_rate(encoder, decoder, x, y):
    memory, last = encoder(x)
    state, token, wrong = last[0], torch.full((len(x),), SOS), 0
    for t in range(LENGTH):
        logits, state = decoder.step(token, state, memory)
        token = logits.argmax(-1)
        wrong += (token != y[:, t]).sum().item()
    return wrong / y.numel()


def main():
    encoder, decoder = Encoder(), Decoder()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
    test_x, test_y = batch(300)
    for step in range(1, 241):
        x, y = batch(32)
        loss = train_step(encoder, decoder, encoder_optimizer, decoder_optimizer, x, y, forcing=0.7)
        if step % 40 == 0:
            rate = symbol_error_rate(encoder, decoder, test_x, test_y)
            print(f"step {step:3d}  loss {loss:.3f}  symbol error rate {rate:.3f}")
    return encoder, decoder, rate


if __name__ == "__main__":
    main()
