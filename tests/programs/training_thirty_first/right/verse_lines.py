"""Model a stream of syllables with a recurrent network: tied embeddings, truncated windows, plain SGD."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)

SYLLABLES = 24
WIDTH = 32
COLUMNS = 12
WINDOW = 16
EPOCHS = 6
CLIP = 0.5


def make_stream(length, table):
    """Each syllable depends on the two before it, with one choice in ten at random."""
    stream = [0, 1]
    surprise = torch.rand(length) < 0.1
    random_syllable = torch.randint(0, SYLLABLES, (length,))
    for position in range(2, length):
        likely = table[stream[-2] % 4][stream[-1]]
        stream.append(random_syllable[position].item() if surprise[position] else likely)
    return torch.tensor(stream)


def columns(stream, count=COLUMNS):
    rows = len(stream) // count
    return stream[: rows * count].view(count, rows).t().contiguous()


class VerseModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SYLLABLES, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.05)
        self.decode = nn.Linear(WIDTH, SYLLABLES)
        self.decode.weight = self.embed.weight
        nn.init.uniform_(self.embed.weight, -0.3, 0.3)
        nn.init.zeros_(self.decode.bias)

    def forward(self, syllables, hidden):
        states, hidden = self.recurrent(self.dropout(self.embed(syllables)), hidden)
        return self.decode(self.dropout(states)), hidden

    def blank(self, count=COLUMNS):
        return self.embed.weight.new_zeros(1, count, WIDTH)


def windows(source):
    for start in range(0, len(source) - 1, WINDOW):
        stop = min(start + WINDOW, len(source) - 1)
        yield source[start:stop], source[start + 1 : stop + 1].reshape(-1)


def train_epoch(model, source, rate):
    model.train()
    hidden = model.blank()
    total = 0.0
    for inputs, targets in windows(source):
        model.zero_grad()
        hidden = hidden.detach()
        scores, hidden = model(inputs, hidden)
        loss = F.cross_entropy(scores.view(-1, SYLLABLES), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-rate)
        total += loss.item() * len(inputs)
    return total / (len(source) - 1)


def evaluate(model, source):
    model.eval()
    hidden = model.blank()
    total = 0.0
    with torch.no_grad():
        for inputs, targets in windows(source):
            scores, hidden = model(inputs, hidden)
            total += F.cross_entropy(scores.view(-1, SYLLABLES), targets).item() * len(inputs)
    return total / (len(source) - 1)


if __name__ == "__main__":
    table = torch.randint(0, SYLLABLES, (4, SYLLABLES)).tolist()
    source = columns(make_stream(4800, table))
    check = columns(make_stream(1200, table))
    model = VerseModel()
    rate = 2.0
    best, best_state = None, None
    for epoch in range(EPOCHS):
        loss = train_epoch(model, source, rate)
        score = evaluate(model, check)
        print(f"epoch {epoch}  train {loss:.3f}  check {score:.3f}  perplexity {math.exp(score):6.2f}  rate {rate:.3f}")
        if best is None or score < best:
            best = score
            best_state = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            rate /= 4
    model.load_state_dict(best_state)
    print(f"kept perplexity {math.exp(evaluate(model, check)):.2f}")
