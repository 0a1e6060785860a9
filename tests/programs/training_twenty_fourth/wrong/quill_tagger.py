"""Part-of-speech tagging of a small synthetic language with a BiLSTM on top of downloaded word vectors."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, IGNORE = 0, -100


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=400)
    p.add_argument("--tags", type=int, default=8)
    p.add_argument("--dim", type=int, default=24)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--embed-lr", type=float, default=1e-2)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def make_language(args, gen):
    """Every word has a home tag; a few tags change when they follow tag 0."""
    home = torch.randint(0, args.tags, (args.vocab,), generator=gen)
    # public vectors cover the frequent part of the vocabulary, the rest starts from small noise
    centers = torch.randn(args.tags, args.dim, generator=gen)
    vectors = 0.1 * torch.randn(args.vocab, args.dim, generator=gen)
    known = torch.rand(args.vocab, generator=gen) < 0.55
    noise = 0.8 * torch.randn(args.vocab, args.dim, generator=gen)
    vectors[known] = (centers[home] + noise)[known]
    vectors[PAD] = 0
    return home, vectors


def make_sentences(n, home, args, gen):
    sentences = []
    for _ in range(n):
        length = int(torch.randint(5, 15, (1,), generator=gen))
        words = torch.randint(1, args.vocab, (length,), generator=gen)
        tags = home[words].clone()
        after_zero = torch.cat([torch.tensor([False]), home[words[:-1]] == 0])
        tags[after_zero & (home[words] < 4)] = 7
        sentences.append((words, tags))
    return sentences


def batches(sentences, size, gen=None):
    order = torch.randperm(len(sentences), generator=gen) if gen is not None else torch.arange(len(sentences))
    for idx in order.split(size):
        words, tags = zip(*(sentences[i] for i in idx.tolist()))
        lengths = torch.tensor([len(w) for w in words])
        yield (pad_sequence(words, batch_first=True, padding_value=PAD), lengths,
               pad_sequence(tags, batch_first=True, padding_value=IGNORE))


class Tagger(nn.Module):
    def __init__(self, vectors, hidden, tags):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors, padding_idx=PAD)
        self.lstm = nn.LSTM(vectors.size(1), hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.drop(states))


@torch.no_grad()
def accuracy(model, sentences):
    model.eval()
    hit = total = 0
    for words, lengths, tags in batches(sentences, 128):
        keep = tags != IGNORE
        hit += (model(words, lengths).argmax(-1) == tags)[keep].sum().item()
        total += keep.sum().item()
    return hit / total


args = parse_args()
torch.manual_seed(args.seed)
gen = torch.Generator().manual_seed(args.seed)
home, vectors = make_language(args, gen)
train, test = make_sentences(900, home, args, gen), make_sentences(300, home, args, gen)

model = Tagger(vectors.clone(), args.hidden, args.tags)
rest = [p for n, p in model.named_parameters() if not n.startswith("embed.")]
optimizer = torch.optim.Adam([{"params": rest}, {"params": model.embed.parameters(), "lr": args.embed_lr}], lr=args.lr)

for epoch in range(args.epochs):
    model.train()
    running = 0.0
    for words, lengths, tags in batches(train, 32, gen):
        loss = F.cross_entropy(model(words, lengths).flatten(0, 1), tags.flatten(), ignore_index=IGNORE)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(words)
    print(f"epoch {epoch + 1}  loss {running / len(train):.3f}  test accuracy {accuracy(model, test):.3f}")
