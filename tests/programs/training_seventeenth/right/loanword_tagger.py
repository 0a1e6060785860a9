"""A tagger that has learnt its vocabulary gets ten loanwords later.

Only the rows of the new words may change: embedding rows of the old words, recurrent layer and output layer stay as
they are, so that old sentences are tagged exactly as before.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)

OLD, NEW, TAGS, LENGTH, DIM = 60, 10, 5, 9, 24

word_tag = torch.randint(TAGS, (OLD + NEW,))


def sentences(n, low=0, high=OLD):
    """A word's tag moves on by one if the next word is of class 0."""
    words = torch.randint(OLD, (n, LENGTH))
    if low > 0:
        place = torch.rand(n, LENGTH) < 0.3
        words = torch.where(place, torch.randint(low, high, (n, LENGTH)), words)
    own = word_tag[words]
    following = F.pad(own[:, 1:], (0, 1), value=1)
    return words, torch.where(following == 0, (own + 1) % TAGS, own)


class Tagger(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embed = nn.Embedding(words, DIM)
        self.drop = nn.Dropout(0.1)
        self.rnn = nn.GRU(DIM, DIM, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * DIM, TAGS)

    def forward(self, words):
        hidden, _ = self.rnn(self.drop(self.embed(words)))
        return self.out(hidden)


def fit(model, optimizer, steps, **which):
    for _ in range(steps):
        words, tags = sentences(48, **which)
        loss = F.cross_entropy(model(words).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, words, tags):
    mode = model.training
    model.eval()
    hits = (model(words).argmax(-1) == tags).float().mean().item()
    model.train(mode)
    return hits


def extend_vocabulary(model, extra):
    old = model.embed.weight.detach()
    model.embed = nn.Embedding(len(old) + extra, DIM)
    with torch.no_grad():
        model.embed.weight[:len(old)] = old
        model.embed.weight[len(old):] = old.mean(dim=0)


def keep_rows(weight, count):
    """Takes the gradient of the first `count` rows away."""
    keep = torch.ones(len(weight), 1)
    keep[:count] = 0
    return weight.register_hook(lambda grad: grad * keep)


model = Tagger(OLD)
loss = fit(model, torch.optim.AdamW(model.parameters(), lr=5e-3), 220)
old_set, new_set = sentences(400), sentences(400, low=OLD, high=OLD + NEW)
print(f"old words: loss {loss:.3f}, accuracy {accuracy(model, *old_set):.4f}")

extend_vocabulary(model, NEW)
model.requires_grad_(False)
model.embed.weight.requires_grad_(True)
before = model.embed.weight.detach().clone()
old_accuracy, new_accuracy = accuracy(model, *old_set), accuracy(model, *new_set)
print(f"extended: old sentences {old_accuracy:.4f}, sentences with loanwords {new_accuracy:.4f}")

handle = keep_rows(model.embed.weight, OLD)
# a decay would shrink the old rows even without a gradient
optimizer = torch.optim.AdamW([model.embed.weight], lr=2e-2, weight_decay=0.0)
loss = fit(model, optimizer, 150, low=OLD, high=OLD + NEW)
handle.remove()

change = (model.embed.weight.detach() - before).norm(dim=1)
print(f"change of old rows {change[:OLD].max().item():.1e}, of new rows {change[OLD:].mean().item():.2f}")
print(f"tuned: old sentences {accuracy(model, *old_set):.4f}, sentences with loanwords {accuracy(model, *new_set):.4f}")
