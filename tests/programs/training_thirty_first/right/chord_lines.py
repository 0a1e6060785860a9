"""A recurrent model of chord progressions, in the manner of PyTorch's word-level language model example."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

CHORDS = 20
STREAMS = 16


def progressions(length, seed):
    """STREAMS long lines; what follows a chord depends on the chord and on the slowly changing key."""
    generator = torch.Generator().manual_seed(seed)
    layout = torch.Generator().manual_seed(71)
    table = torch.softmax(3.0 * torch.randn(3, CHORDS, CHORDS, generator=layout), dim=-1)
    key = torch.randint(3, (STREAMS,), generator=generator)
    chord = torch.randint(CHORDS, (STREAMS,), generator=generator)
    lines = []
    for _ in range(length):
        lines.append(chord)
        change = torch.rand(STREAMS, generator=generator) < 0.02
        key = torch.where(change, torch.randint(3, (STREAMS,), generator=generator), key)
        chord = torch.multinomial(table[key, chord], 1, generator=generator).flatten()
    return torch.stack(lines)


class ChordModel(nn.Module):
    def __init__(self, size=32, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(CHORDS, size)
        self.rnn = nn.LSTM(size, size)
        self.decoder = nn.Linear(size, CHORDS)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, chords, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(chords)), hidden)
        return self.decoder(self.drop(output)), hidden

    def init_hidden(self, streams):
        weight = next(self.parameters())
        return weight.new_zeros(1, streams, self.rnn.hidden_size), weight.new_zeros(1, streams, self.rnn.hidden_size)


def repackage(hidden):
    return tuple(h.detach() for h in hidden)


def chunks(lines, span):
    for start in range(0, len(lines) - 1, span):
        end = min(start + span, len(lines) - 1)
        yield lines[start:end], lines[start + 1:end + 1]


def train_epoch(model, lines, lr, span=12, clip=0.5):
    model.train()
    hidden = model.init_hidden(STREAMS)
    total, count = 0.0, 0
    for chords, following in chunks(lines, span):
        model.zero_grad()
        hidden = repackage(hidden)
        output, hidden = model(chords, hidden)
        loss = F.cross_entropy(output.flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item() * following.numel()
        count += following.numel()
    return total / count


@torch.no_grad()
def evaluate(model, lines, span=12):
    model.eval()
    hidden = model.init_hidden(STREAMS)
    total, count = 0.0, 0
    for chords, following in chunks(lines, span):
        output, hidden = model(chords, hidden)
        total += F.cross_entropy(output.flatten(0, 1), following.flatten(), reduction="sum").item()
        count += following.numel()
    return total / count


def main():
    torch.manual_seed(43)
    lines, held_out = progressions(360, seed=1), progressions(120, seed=2)
    model = ChordModel()
    lr, best, best_state = 4.0, math.inf, None
    for epoch in range(1, 8):
        loss = train_epoch(model, lines, lr)
        value = evaluate(model, held_out)
        print(f"epoch {epoch}  rate {lr:.2f}  train {loss:.4f}  held out {value:.4f}  perplexity {math.exp(value):.2f}")
        if value < best:
            best, best_state = value, copy.deepcopy(model.state_dict())
        else:
            lr /= 4.0
    model.load_state_dict(best_state)
    print(f"best: held out {evaluate(model, held_out):.4f}, one chord in {CHORDS}: {math.log(CHORDS):.4f}")
    return model, best


if __name__ == "__main__":
    model, best = main()
