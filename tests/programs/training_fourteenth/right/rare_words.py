"""Tagger for a small town-council corpus: given word vectors keep their values, words without one are learned.

The word table also scores the tags' prototype words, so one table serves both ends of the network.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 17
KNOWN = 60  # words 0..59 come with a vector
NEW = 20  # words 60..79 do not
VOCAB = KNOWN + NEW
TAGS = 4
DIM = 16
WINDOW = 8
torch.manual_seed(SEED)


def make_vectors(rng):
    """Words of one group have similar vectors; word w is of group w % TAGS."""
    centres = rng.normal(size=(TAGS, DIM))
    words = centres[np.arange(KNOWN) % TAGS] + 0.8 * rng.normal(size=(KNOWN, DIM))
    return torch.tensor(words, dtype=torch.float32)


def make_lines(n, rng):
    words = torch.tensor(rng.integers(0, VOCAB, size=(n, WINDOW)))
    group = words % TAGS
    # a word's tag is its group's, moved on by one after a word of group 3
    previous = torch.cat([torch.zeros(n, 1, dtype=torch.long), group[:, :-1]], dim=1)
    return words, (group + (previous == 3).long()) % TAGS


class Tagger(nn.Module):
    def __init__(self, vectors, hidden=32):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        with torch.no_grad():
            self.words.weight[:KNOWN] = vectors
            self.words.weight[KNOWN:] *= 0.1
        self.register_buffer("learned", (torch.arange(VOCAB) >= KNOWN).float().unsqueeze(1))
        self.words.weight.register_hook(lambda grad: grad * self.learned)
        self.rnn = nn.GRU(DIM, hidden, batch_first=True)
        self.to_word = nn.Linear(hidden, DIM)
        self.register_buffer("prototypes", torch.arange(TAGS))

    def forward(self, words):
        states, _ = self.rnn(self.words(words))
        query = self.to_word(states)
        # scores against the first word of each group; scaled as in dot-product attention
        return query @ self.words(self.prototypes).t() / DIM**0.5


def accuracy(model, words, tags):
    model.eval()
    with torch.no_grad():
        hits = (model(words).argmax(-1) == tags).float()
    new = words >= KNOWN
    return hits[~new].mean().item(), hits[new].mean().item()


def main():
    rng = np.random.default_rng(SEED)
    vectors = make_vectors(rng)
    words, tags = make_lines(900, rng)
    test_words, test_tags = make_lines(300, rng)

    model = Tagger(vectors)
    table = model.words.weight
    rest = [p for p in model.parameters() if p is not table]
    opt = torch.optim.AdamW([
        {"params": rest, "weight_decay": 1e-2},
        {"params": [table], "lr": 1e-2, "weight_decay": 0.0},
    ], lr=4e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(words)).split(50):
            logits = model(words[idx])
            loss = F.cross_entropy(logits.flatten(0, 1), tags[idx].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            opt.step()
            total += loss.item() * len(idx)
        if epoch % 3 == 2:
            known, new = accuracy(model, test_words, test_tags)
            print(f"epoch {epoch}: loss {total / len(words):.4f}  accuracy given {known:.3f}  new {new:.3f}")
    kept = torch.equal(table.detach()[:KNOWN], vectors)
    moved = (table.detach()[KNOWN:]).norm(dim=1).mean().item()
    print(f"given vectors unchanged: {kept}, mean norm of the learned ones {moved:.2f}")
    return model


if __name__ == "__main__":
    main()
