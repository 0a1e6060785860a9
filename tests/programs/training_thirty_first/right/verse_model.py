"""Language model of artificial verse, read as parallel streams with a state carried along.

The output layer shares its weight with the embedding, the updates are plain gradient steps and
the step size is divided by four whenever the validation loss stops falling.
"""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

LETTERS, SIZE = 20, 32
STREAMS, WINDOW = 10, 16
EPOCHS = 4


def write_verse(length, generator):
    habits = torch.softmax(3.0 * torch.randn(LETTERS, LETTERS, generator=generator), dim=1)
    draws = torch.multinomial(habits, length, replacement=True, generator=generator)
    text = [0]
    for t in range(length - 1):
        text.append(draws[text[-1], t].item())
    return torch.tensor(text)


def into_streams(text):
    length = len(text) // STREAMS
    return text[:length * STREAMS].view(STREAMS, length).t().contiguous()


class VerseModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, SIZE)
        self.drop = nn.Dropout(0.1)
        self.rnn = nn.GRU(SIZE, SIZE)
        self.out = nn.Linear(SIZE, LETTERS)
        self.out.weight = self.embed.weight
        self.embed.weight.data.uniform_(-0.2, 0.2)
        self.out.bias.data.zero_()

    def forward(self, letters, hidden):
        states, hidden = self.rnn(self.drop(self.embed(letters)), hidden)
        return self.out(self.drop(states)), hidden

    def start(self, streams):
        weight = next(self.parameters())
        return weight.new_zeros(1, streams, SIZE)


def windows(streams):
    for begin in range(0, len(streams) - 1, WINDOW):
        size = min(WINDOW, len(streams) - 1 - begin)
        yield streams[begin:begin + size], streams[begin + 1:begin + 1 + size]


def train_epoch(model, streams, lr):
    model.train()
    hidden = model.start(streams.shape[1])
    total, count = 0.0, 0
    for letters, targets in windows(streams):
        model.zero_grad()
        hidden = hidden.detach()
        scores, hidden = model(letters, hidden)
        loss = F.cross_entropy(scores.view(-1, LETTERS), targets.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item() * targets.numel()
        count += targets.numel()
    return total / count


def evaluate(model, streams):
    model.eval()
    hidden = model.start(streams.shape[1])
    total, count = 0.0, 0
    with torch.no_grad():
        for letters, targets in windows(streams):
            scores, hidden = model(letters, hidden)
            total += F.cross_entropy(scores.view(-1, LETTERS), targets.reshape(-1), reduction="sum").item()
            count += targets.numel()
    return total / count


def main():
    torch.manual_seed(37)
    text = write_verse(7000, torch.Generator().manual_seed(370))
    train, valid = into_streams(text[:5600]), into_streams(text[5600:])
    model = VerseModel()
    lr, best_loss, best_state = 2.0, math.inf, None
    for epoch in range(EPOCHS):
        train_loss = train_epoch(model, train, lr)
        valid_loss = evaluate(model, valid)
        if valid_loss < best_loss:
            best_loss, best_state = valid_loss, copy.deepcopy(model.state_dict())
        else:
            lr /= 4.0
        print(f"epoch {epoch}  train {train_loss:.4f}  valid {valid_loss:.4f}  lr {lr}")
    model.load_state_dict(best_state)
    print(f"best valid perplexity {math.exp(evaluate(model, valid)):.2f} of {LETTERS} letters")
    return model, best_loss, valid


if __name__ == "__main__":
    model, best_loss, valid = main()
