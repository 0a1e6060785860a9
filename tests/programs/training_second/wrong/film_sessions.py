import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(23)

GENRES = {
    "western": ["Rio", "Tombstone", "Saddle", "Canyon", "Outlaw"],
    "space": ["Orbit", "Nebula", "Lander", "Eclipse", "Comet"],
    "noir": ["Alley", "Cigar", "Rainfall", "Detective", "Velvet"],
    "family": ["Puppy", "Treehouse", "Balloon", "Picnic", "Castle"],
}


def sessions(n):
    names = list(GENRES)
    picks = []
    for _ in range(n):
        genre = names[torch.randint(0, 4, (1,))]
        shelf = GENRES[genre]
        length = int(torch.randint(2, 6, (1,)))
        views = [shelf[i] for i in torch.randint(0, 5, (length + 1,))]
        if torch.rand(1) < 0.3:
            other = GENRES[names[torch.randint(0, 4, (1,))]]
            views[0] = other[torch.randint(0, 5, (1,))]
        picks.append((views[:-1], views[-1]))
    return picks


def build_index(data):
    films = sorted({film for history, nxt in data for film in [*history, nxt]})
    return {film: i for i, film in enumerate(films)}


class NextFilm(nn.Module):
    def __init__(self, films, dim):
        super().__init__()
        self.table = nn.Embedding(films, dim, padding_idx=0)
        self.tower = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, films))

    def forward(self, history, lengths):
        profile = self.table(history).sum(dim=1) / lengths[:, None]
        return self.tower(profile)


def encode(batch, index):
    ids = [torch.tensor([index[f] for f in history]) for history, _ in batch]
    lengths = torch.tensor([len(i) for i in ids], dtype=torch.float)
    targets = torch.tensor([index[nxt] for _, nxt in batch])
    return pad_sequence(ids, batch_first=True), lengths, targets


train, test = sessions(400), sessions(150)
index = build_index(train + test)
model = NextFilm(len(index), dim=12)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(4):
    order = torch.randperm(len(train)).tolist()
    total = 0.0
    for start in range(0, len(order), 25):
        history, lengths, targets = encode([train[i] for i in order[start : start + 25]], index)
        loss = nn.functional.cross_entropy(model(history, lengths), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(targets)
    print(f"epoch {epoch} loss {total / len(train):.4f}")

with torch.no_grad():
    history, lengths, targets = encode(test, index)
    top = model(history, lengths).topk(5, dim=1).indices
    print(f"hit rate at 5: {(top == targets[:, None]).any(1).float().mean():.3f}")
