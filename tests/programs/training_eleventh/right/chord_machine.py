"""Restricted Boltzmann machine over piano chords, trained with persistent chains (energy differences)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
NOTES, HIDDEN, CHAINS = 24, 40, 256
MAJOR, MINOR, SEVENTH = (0, 4, 7), (0, 3, 7), (0, 4, 7, 10)


def make_chords(n):
    """Chords of one key in two octaves; now and then a note is missing or doubled an octave higher."""
    degrees = [(0, MAJOR), (2, MINOR), (4, MINOR), (5, MAJOR), (7, SEVENTH), (9, MINOR)]
    x = torch.zeros(n, NOTES)
    for i in range(n):
        root, kind = degrees[torch.randint(len(degrees), ()).item()]
        for step in kind:
            note = (root + step) % 12
            x[i, note + 12 * int(torch.rand(()) < 0.3)] = 1.0
            if torch.rand(()) < 0.1:
                x[i, note + 12] = 1.0
        if torch.rand(()) < 0.1:
            x[i, root % 12] = 0.0
    return x


class Machine(nn.Module):
    def __init__(self, chains):
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(NOTES, HIDDEN))
        self.visible = nn.Parameter(torch.zeros(NOTES))
        self.hidden = nn.Parameter(torch.zeros(HIDDEN))
        self.register_buffer("chains", torch.bernoulli(torch.full((chains, NOTES), 0.2)))

    def free_energy(self, v):
        return -v @ self.visible - F.softplus(v @ self.weight + self.hidden).sum(-1)

    @torch.no_grad()
    def gibbs(self, v, steps):
        for _ in range(steps):
            h = torch.bernoulli(torch.sigmoid(v @ self.weight + self.hidden))
            v = torch.bernoulli(torch.sigmoid(h @ self.weight.T + self.visible))
        return v

    def advance(self, steps):
        self.chains.copy_(self.gibbs(self.chains, steps))
        return self.chains

    @torch.no_grad()
    def pseudo_likelihood(self, v):
        """Mean log-probability of each note given all the others."""
        energy = self.free_energy(v)
        total = 0.0
        for k in range(NOTES):
            flipped = v.clone()
            flipped[:, k] = 1 - flipped[:, k]
            total += F.logsigmoid(self.free_energy(flipped) - energy).mean().item()
        return total / NOTES


def chord_share(v, known):
    """Share of samples whose pitch classes occur as a chord of the data."""
    fold = lambda x: ((x[:, :12] + x[:, 12:]) > 0).long() @ (2 ** torch.arange(12))
    return torch.isin(fold(v), fold(known)).float().mean().item()


chords, test = make_chords(3000), make_chords(400)
model = Machine(CHAINS)
with torch.no_grad():
    rate = chords.mean(0).clamp(0.01, 0.99)
    model.visible.copy_((rate / (1 - rate)).log())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
EPOCHS = 30
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=EPOCHS)

for epoch in range(EPOCHS):
    gap = 0.0
    for idx in torch.randperm(len(chords)).split(100):
        fantasy = model.advance(steps=2)
        loss = model.free_energy(chords[idx]).mean() - model.free_energy(fantasy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gap += loss.item() * len(idx)
    scheduler.step()
    if epoch % 10 == 9:
        dream = model.gibbs(model.chains, 50)
        print(
            f"epoch {epoch + 1}  energy gap {gap / len(chords):+.3f}  test pseudo-likelihood "
            f"{model.pseudo_likelihood(test):.4f}  dreamed chords in key {chord_share(dream, test):.3f}"
        )
coin = torch.bernoulli(rate.expand(1000, -1))
print(f"independent notes: in key {chord_share(coin, test):.3f}")
