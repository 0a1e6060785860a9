"""Podcast recommender with a catalogue that grows every week (BPR matrix factorisation, synthetic plays)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

N_USERS, DIM_TRUE = 300, 6
START_ITEMS, NEW_PER_WEEK, WEEKS = 120, 60, 4
TASTE = rng.normal(size=(N_USERS, DIM_TRUE))
TOPIC = rng.normal(size=(START_ITEMS + NEW_PER_WEEK * (WEEKS - 1), DIM_TRUE))


def week_of_plays(n_items, per_user=24):
    """Each listener plays shows in proportion to a softmax over the current catalogue."""
    users, items = [], []
    for u in range(N_USERS):
        score = 1.6 * TOPIC[:n_items] @ TASTE[u] / np.sqrt(DIM_TRUE)
        p = np.exp(score - score.max())
        users += [u] * per_user
        items += list(rng.choice(n_items, size=per_user, p=p / p.sum()))
    plays = np.stack([users, items], 1)
    rng.shuffle(plays)
    cut = int(0.9 * len(plays))
    return torch.from_numpy(plays[:cut]), torch.from_numpy(plays[cut:])


class ShowRecommender(nn.Module):
    def __init__(self, n_users, n_items, dim=16):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(-1) + self.bias(items).squeeze(-1)

    def extend_catalog(self, n_new):
        """Adds rows for new shows; known shows keep what was learned about them."""
        dim = self.item.embedding_dim
        fresh = torch.randn(n_new, dim) * 0.1
        vectors = torch.cat([self.item.weight.data, fresh])
        biases = torch.cat([self.bias.weight.data, torch.zeros(n_new, 1)])
        self.item = nn.Embedding.from_pretrained(vectors, freeze=False)
        self.bias = nn.Embedding.from_pretrained(biases, freeze=False)


@torch.no_grad()
def ranking_auc(model, plays, n_items, first_item=0):
    """Share of held-out plays that score above a random show, for shows from first_item on."""
    plays = plays[plays[:, 1] >= first_item]
    other = torch.randint(n_items, (len(plays), 20))
    positive = model(plays[:, 0], plays[:, 1])[:, None]
    negative = model(plays[:, :1].expand(-1, 20), other)
    return (positive > negative).float().mean().item()


model = ShowRecommender(N_USERS, START_ITEMS)
optimizer = torch.optim.Adam(model.parameters(), lr=0.015, weight_decay=1e-5)
n_items, newest = START_ITEMS, 0

for week in range(WEEKS):
    if week > 0:
        newest = n_items
        n_items += NEW_PER_WEEK
        model.extend_catalog(NEW_PER_WEEK)
    train, held_out = week_of_plays(n_items)
    for epoch in range(4):
        order = torch.randperm(len(train))
        total = 0.0
        for idx in order.split(256):
            users, items = train[idx, 0], train[idx, 1]
            sampled = torch.randint(n_items, items.shape)
            margin = model(users, items) - model(users, sampled)
            loss = -F.logsigmoid(margin).mean()
            model.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
    print(
        f"week {week + 1}: {n_items} shows  loss {total / len(train):.4f}  "
        f"AUC {ranking_auc(model, held_out, n_items):.3f}  "
        f"AUC newest shows {ranking_auc(model, held_out, n_items, newest):.3f}"
    )
