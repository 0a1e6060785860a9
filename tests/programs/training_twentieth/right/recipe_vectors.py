"""Skip-gram with negative sampling on made-up recipes, after the C program word2vec.

As there: input vectors start uniform and small, output vectors start at zero, negatives follow count^0.75, plain SGD
with a rate that falls linearly, and in the end only the input vectors are kept.
"""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 17
DIM, WINDOW, NEGATIVES = 16, 2, 5
EPOCHS, BATCH, LR = 3, 256, 0.05

random.seed(SEED)
torch.manual_seed(SEED)

GROUPS = {
    "cake": ["flour", "sugar", "butter", "vanilla", "cream", "icing"],
    "curry": ["cumin", "ginger", "chili", "turmeric", "coconut", "rice"],
    "salad": ["lettuce", "cucumber", "olive", "feta", "radish", "lemon"],
    "soup": ["carrot", "leek", "celery", "potato", "stock", "bay"],
}
COMMON = ["salt", "water", "pepper"]


def make_recipe():
    words = random.choices(GROUPS[random.choice(list(GROUPS))], k=8)
    for _ in range(2):
        words.insert(random.randrange(len(words)), random.choice(COMMON))
    return words


recipes = [make_recipe() for _ in range(1500)]
vocab = sorted({w for r in recipes for w in r})
index = {w: i for i, w in enumerate(vocab)}
counts = torch.zeros(len(vocab))
pairs = []
for recipe in recipes:
    ids = [index[w] for w in recipe]
    for i, centre in enumerate(ids):
        counts[centre] += 1
        for j in range(max(0, i - WINDOW), min(len(ids), i + WINDOW + 1)):
            if j != i:
                pairs.append((centre, ids[j]))
pairs = torch.tensor(pairs)
noise = counts ** 0.75


class SkipGram(nn.Module):
    def __init__(self, n_words, dim):
        super().__init__()
        self.inputs = nn.Embedding(n_words, dim, sparse=True)
        self.outputs = nn.Embedding(n_words, dim, sparse=True)
        nn.init.uniform_(self.inputs.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.outputs.weight)

    def forward(self, centre, context, negatives):
        v = self.inputs(centre)
        pos = (v * self.outputs(context)).sum(dim=1)
        neg = torch.bmm(self.outputs(negatives), v.unsqueeze(2)).squeeze(2)
        # summed over the batch: each pair moves its vectors by the full rate, as in the C program
        return -(F.logsigmoid(pos).sum() + F.logsigmoid(-neg).sum())


def group_neighbours(vectors):
    """Share of words whose nearest neighbour (cosine) is from the same kind of dish."""
    unit = F.normalize(vectors, dim=1)
    sims = unit @ unit.t()
    sims.fill_diagonal_(-1.0)
    group_of = {w: g for g, ws in GROUPS.items() for w in ws}
    for w in COMMON:
        sims[:, index[w]] = -1.0
    hits = [group_of[vocab[sims[index[w]].argmax().item()]] == g for w, g in group_of.items()]
    return sum(hits) / len(hits)


model = SkipGram(len(vocab), DIM)
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
n_steps = EPOCHS * ((len(pairs) + BATCH - 1) // BATCH)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: max(1e-4, 1.0 - s / n_steps))
print(f"before: neighbours from the same dish {group_neighbours(model.inputs.weight.detach()):.2f}")

for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for idx in torch.randperm(len(pairs)).split(BATCH):
        centre, context = pairs[idx, 0], pairs[idx, 1]
        negatives = torch.multinomial(noise, len(idx) * NEGATIVES, replacement=True).view(len(idx), NEGATIVES)
        loss = model(centre, context, negatives)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    score = group_neighbours(model.inputs.weight.detach())
    print(f"epoch {epoch}: loss per pair {total / len(pairs):.3f}  neighbours from the same dish {score:.2f}")
