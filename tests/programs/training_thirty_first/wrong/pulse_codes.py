"""Compresses pulse traces to a few code numbers.

An encoder turns a trace into four short vectors, each is replaced by the nearest entry of a code book, and a decoder
rebuilds the trace. What is stored are the numbers of the entries.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 32
SLOTS = 4


def pulse_traces(count, generator):
    """Two bumps of varying place, width and height on a slow drift."""
    t = torch.linspace(0, 1, LENGTH)

    def draw(low, high):
        return low + (high - low) * torch.rand(count, 1, generator=generator)

    first = draw(0.8, 1.6) * torch.exp(-((t - draw(0.15, 0.4)) / draw(0.04, 0.08)) ** 2)
    second = draw(0.3, 0.9) * torch.exp(-((t - draw(0.6, 0.85)) / draw(0.08, 0.14)) ** 2)
    drift = 0.3 * torch.sin(math.pi * t + draw(0, 2 * math.pi))
    return first + second + drift


class CodeBook(nn.Module):
    def __init__(self, entries, size, commitment=0.25):
        super().__init__()
        self.entries = nn.Embedding(entries, size)
        nn.init.normal_(self.entries.weight, std=0.5)
        self.commitment = commitment

    def nearest(self, vectors):
        return torch.cdist(vectors.detach(), self.entries.weight.detach()).argmin(dim=-1)

    def forward(self, vectors):
        numbers = self.nearest(vectors)
        chosen = self.entries(numbers)
        book_loss = F.mse_loss(chosen, vectors.detach())
        commit_loss = F.mse_loss(vectors, chosen.detach())
        passed = chosen + (vectors - chosen).detach()
        return passed, numbers, book_loss + self.commitment * commit_loss


class Compressor(nn.Module):
    def __init__(self, entries=32, size=6, width=64):
        super().__init__()
        self.size = size
        self.encoder = nn.Sequential(nn.Linear(LENGTH, width), nn.ReLU(), nn.Linear(width, SLOTS * size))
        self.book = CodeBook(entries, size)
        self.decoder = nn.Sequential(nn.Linear(SLOTS * size, width), nn.ReLU(), nn.Linear(width, LENGTH))

    def encode(self, traces):
        return self.encoder(traces).view(-1, SLOTS, self.size)

    def forward(self, traces):
        passed, numbers, book_loss = self.book(self.encode(traces))
        return self.decoder(passed.flatten(1)), numbers, book_loss

    @torch.no_grad()
    def compress(self, traces):
        return self.book.nearest(self.encode(traces))

    @torch.no_grad()
    def restore(self, numbers):
        return self.decoder(self.book.entries(numbers).flatten(1))


def stored_error(model, traces):
    """Error of traces that went through the stored numbers, relative to their variance; and the entries in use."""
    numbers = model.compress(traces)
    error = F.mse_loss(model.restore(numbers), traces) / traces.var()
    return error.item(), numbers.unique().numel()


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(6)
    held_out = pulse_traces(256, generator)
    model = Compressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, 301):
        traces = pulse_traces(64, generator)
        rebuilt, _, book_loss = model(traces)
        rebuild_loss = F.mse_loss(rebuilt, traces)
        loss = rebuild_loss + book_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            error, used = stored_error(model, held_out)
            print(
                f"step {step:4d}  rebuild {rebuild_loss.item():.4f}  book {book_loss.item():.4f}"
                f"  stored {error:.3f}  entries {used}"
            )
    return model, held_out


if __name__ == "__main__":
    model, held_out = main()
