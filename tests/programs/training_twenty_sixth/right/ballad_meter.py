"""Stress tagging of ballad lines (one tag per syllable). Lines differ a lot in length, so an optimizer step covers
several micro-batches and every syllable of the step counts the same."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

IGNORE = -1


@dataclass
class Config:
    lines: int = 640
    syllables: int = 30
    tags: int = 3
    hidden: int = 32
    micro_batch: int = 16
    micro_batches: int = 4
    epochs: int = 8
    lr: float = 1e-2
    clip: float = 1.0
    seed: int = 31


def make_line(cfg, gen):
    """The tag depends on the syllable and on the one before it."""
    n = int(torch.randint(2, 24, (1,), generator=gen))
    syllables = torch.randint(0, cfg.syllables, (n,), generator=gen)
    tags, previous = [], 0
    for s in syllables.tolist():
        tags.append((s // 5 + previous // 10) % cfg.tags)
        previous = s
    return syllables, torch.tensor(tags)


def collate(lines):
    syllables = pad_sequence([s for s, _ in lines], batch_first=True)
    tags = pad_sequence([t for _, t in lines], batch_first=True, padding_value=IGNORE)
    return syllables, tags


class Tagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.syllables, cfg.hidden)
        self.rnn = nn.GRU(cfg.hidden, cfg.hidden, batch_first=True)
        self.out = nn.Linear(cfg.hidden, cfg.tags)

    def forward(self, syllables):
        return self.out(self.rnn(self.embed(syllables))[0])


def summed_loss(model, syllables, tags):
    return F.cross_entropy(model(syllables).flatten(0, 1), tags.flatten(), ignore_index=IGNORE, reduction="sum")


def train_step(model, optimizer, micro_batches, clip):
    total, n_syllables = 0.0, 0
    for syllables, tags in micro_batches:
        loss = summed_loss(model, syllables, tags)
        loss.backward()
        total += loss.item()
        n_syllables += int((tags != IGNORE).sum())
    for p in model.parameters():
        p.grad /= n_syllables
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad()
    return total / n_syllables


@torch.no_grad()
def accuracy(model, lines):
    model.eval()
    syllables, tags = collate(lines)
    known = tags != IGNORE
    return (model(syllables).argmax(-1) == tags)[known].float().mean().item()


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    corpus = [make_line(cfg, gen) for _ in range(cfg.lines + 150)]
    train, held_out = corpus[:cfg.lines], corpus[cfg.lines:]
    model = Tagger(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    per_step = cfg.micro_batch * cfg.micro_batches
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        order = torch.randperm(len(train), generator=gen).tolist()
        for start in range(0, len(order), per_step):
            chosen = [train[i] for i in order[start:start + per_step]]
            micro = [collate(chosen[i:i + cfg.micro_batch]) for i in range(0, len(chosen), cfg.micro_batch)]
            loss = train_step(model, optimizer, micro, cfg.clip)
        print(f"epoch {epoch}  loss per syllable {loss:.4f}  held-out accuracy {accuracy(model, held_out):.3f}")
    return model, held_out


if __name__ == "__main__":
    model, held_out = main()
