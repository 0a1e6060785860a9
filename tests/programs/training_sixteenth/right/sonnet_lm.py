"""NLP assignment: a character model with tied embeddings, trained by truncated BPTT.

The text is made of rhyming nonsense verse, read as eight parallel streams that are never shuffled.
"""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

STREAMS, WINDOW, ACCUMULATE = 8, 24, 2
RHYMES = [("night", "light", "sight"), ("sea", "tree", "free"), ("stone", "bone", "alone")]
LINES = ["o see the {}", "we walk by {}", "the king of {}", "my song is {}", "and all the {}"]


def write_text(n_lines, rng):
    lines = []
    while len(lines) < n_lines:
        rhyme = rng.choice(RHYMES)
        lines += [rng.choice(LINES).format(word) for word in rng.sample(rhyme, 2)]
    return "\n".join(lines) + "\n"


def to_streams(text, stoi):
    ids = torch.tensor([stoi[c] for c in text])
    length = len(ids) // STREAMS
    return ids[: length * STREAMS].view(STREAMS, length)


class CharModel(nn.Module):
    def __init__(self, vocab, dim=32, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)
        self.project = nn.Linear(hidden, dim)
        self.decode = nn.Linear(dim, vocab)
        self.decode.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(dim))

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.decode(self.project(out)), state


def windows(streams):
    for start in range(0, streams.size(1) - 1, WINDOW):
        stop = min(start + WINDOW, streams.size(1) - 1)
        yield streams[:, start:stop], streams[:, start + 1:stop + 1]


def train_epoch(model, optimizer, streams):
    model.train()
    pieces = list(windows(streams))
    state, total, count = None, 0.0, 0
    for group_start in range(0, len(pieces), ACCUMULATE):
        group = pieces[group_start:group_start + ACCUMULATE]
        characters = sum(y.numel() for _, y in group)
        for x, y in group:
            logits, state = model(x, state)
            state = tuple(s.detach() for s in state)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum")
            (loss / characters).backward()
            total, count = total + loss.item(), count + y.numel()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return total / count


@torch.no_grad()
def bits_per_char(model, streams):
    model.eval()
    state, total = None, 0.0
    for x, y in windows(streams):
        logits, state = model(x, state)
        total += F.cross_entropy(logits.transpose(1, 2), y, reduction="sum").item()
    return total / (STREAMS * (streams.size(1) - 1)) / math.log(2)


@torch.no_grad()
def sample(model, stoi, length=70):
    itos = {i: c for c, i in stoi.items()}
    x, state, text = torch.tensor([[stoi["\n"]]]), None, ""
    for _ in range(length):
        logits, state = model(x, state)
        x = torch.multinomial(F.softmax(logits[:, -1] / 0.7, dim=-1), 1)
        text += itos[x.item()]
    return text


def main():
    torch.manual_seed(5)
    rng = random.Random(5)
    train_text, test_text = write_text(500, rng), write_text(150, rng)
    stoi = {c: i for i, c in enumerate(sorted(set(train_text + test_text)))}
    model = CharModel(len(stoi))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=8)
    train, test = to_streams(train_text, stoi), to_streams(test_text, stoi)
    for epoch in range(8):
        loss = train_epoch(model, optimizer, train)
        scheduler.step()
        print(f"epoch {epoch}: train loss {loss:.3f}  test bits/char {bits_per_char(model, test):.3f}")
    print(sample(model, stoi))


if __name__ == "__main__":
    main()
