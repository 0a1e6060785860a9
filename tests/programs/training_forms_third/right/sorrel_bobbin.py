import torch
from torch import nn

torch.manual_seed(103)
WORDS = 80


class Reader(nn.Module):
    def __init__(self, labels, width=16):
        super().__init__()
        self.trunk = nn.ModuleDict({
            "look": nn.Embedding(WORDS, width),
            "mix": nn.Linear(width, width),
        })
        self.label = nn.Linear(width, labels)

    def forward(self, ids):
        return self.label(torch.tanh(self.trunk["mix"](self.trunk["look"](ids))).mean(dim=1))


def keep_fixed(module):
    for value in module.parameters():
        value.requires_grad_(False)


def texts(n, labels, shift=0):
    label = torch.randint(0, labels, (n,))
    topical = (label[:, None] * 7 + shift + torch.randint(0, 7, (n, 5))) % WORDS
    filler = torch.randint(0, WORDS, (n, 7))
    return torch.cat([topical, filler], dim=1), label


def study(model, make, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        ids, label = make()
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def adapt(general, labels):
    special = Reader(labels)
    special.trunk.load_state_dict(general.trunk.state_dict())
    keep_fixed(special.trunk)
    return special


general = Reader(labels=8)
print(f"general loss {study(general, lambda: texts(64, 8), 100, 1e-2):.4f}")
special = adapt(general, labels=3)
print(f"special loss {study(special, lambda: texts(24, 3, shift=3), 80, 1e-2):.4f}")
with torch.no_grad():
    ids, label = texts(300, 3, shift=3)
    print(f"special accuracy {(special(ids).argmax(1) == label).float().mean().item():.4f}")
    drift = torch.dist(special.trunk["mix"].weight, general.trunk["mix"].weight).item()
    print(f"distance between the mixers {drift:.4f}")
