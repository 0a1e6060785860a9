import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

PAD = -100


class Tagger(nn.Module):
    def __init__(self, vocab=30, tags=5, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


def make_sentences(n=90, vocab=30, tags=5):
    pairs = []
    for _ in range(n):
        length = int(torch.randint(3, 15, ()))
        ids = torch.randint(0, vocab, (length,))
        pairs.append((ids, ids % tags))
    return pairs


def micro_batches(pairs, size):
    for i in range(0, len(pairs), size):
        ids, tags = zip(*pairs[i : i + size])
        yield pad_sequence(ids, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=PAD)


def grouped(stream, count):
    group = []
    for item in stream:
        group.append(item)
        if len(group) == count:
            yield group
            group = []
    if group:
        yield group


class Trainer:
    def __init__(self, model, accumulate=4, max_norm=1.0):
        self.model, self.accumulate, self.max_norm = model, accumulate, max_norm
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        self.optimizer.zero_grad()

    def train_group(self, group):
        tokens = sum(int((tags != PAD).sum()) for _, tags in group)
        total = 0.0
        for ids, tags in group:
            logits = self.model(ids)
            loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=PAD, reduction="sum")
            loss.div(tokens).backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total / tokens

    def epoch(self, pairs, micro=8):
        order = torch.randperm(len(pairs)).tolist()
        stream = micro_batches([pairs[i] for i in order], micro)
        return [self.train_group(g) for g in grouped(stream, self.accumulate)]


def main(epochs=6):
    torch.manual_seed(0)
    pairs = make_sentences()
    trainer = Trainer(Tagger())
    for epoch in range(epochs):
        losses = trainer.epoch(pairs)
        print(f"epoch {epoch} updates {len(losses)} loss {sum(losses) / len(losses):.4f}")
    return trainer


if __name__ == "__main__":
    trainer = main()
