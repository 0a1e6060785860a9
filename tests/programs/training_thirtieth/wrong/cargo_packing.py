"""Actor-critic that packs cargo: pick pieces one by one until nothing fits or the hold is closed.

Pieces that are already loaded or too heavy cannot be picked. An entropy bonus keeps the choice open early on.
"""
import torch
from torch import nn

torch.manual_seed(8)

HOLDS, PIECES, CAPACITY = 48, 7, 1.0
ENTROPY, VALUE = 0.01, 0.5


class Holds:
    """A batch of packing problems; the last action closes the hold."""

    def reset(self):
        self.weight = 0.1 + 0.5 * torch.rand(HOLDS, PIECES)
        self.worth = torch.rand(HOLDS, PIECES)
        self.loaded = torch.zeros(HOLDS, PIECES, dtype=torch.bool)
        self.room = torch.full((HOLDS,), CAPACITY)
        self.closed = torch.zeros(HOLDS, dtype=torch.bool)

    def observe(self):
        pieces = torch.stack([self.weight, self.worth, self.loaded.float()], dim=2)
        return torch.cat([pieces.flatten(1), self.room.unsqueeze(1)], dim=1)

    def allowed(self):
        fits = ~self.loaded & (self.weight <= self.room.unsqueeze(1)) & ~self.closed.unsqueeze(1)
        return torch.cat([fits, torch.ones(HOLDS, 1, dtype=torch.bool)], dim=1)

    def step(self, action):
        picked = action < PIECES
        index = action.clamp(max=PIECES - 1).unsqueeze(1)
        gain = torch.where(picked, self.worth.gather(1, index).squeeze(1), torch.zeros(HOLDS))
        self.room = self.room - torch.where(picked, self.weight.gather(1, index).squeeze(1), torch.zeros(HOLDS))
        self.loaded = self.loaded.scatter(1, index, self.loaded.gather(1, index) | picked.unsqueeze(1))
        self.closed = self.closed | ~picked
        return gain


class Packer(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3 * PIECES + 1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.choice = nn.Linear(hidden, PIECES + 1)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observation, allowed):
        features = self.body(observation)
        logits = self.choice(features).masked_fill(~allowed, float("-inf"))
        return torch.log_softmax(logits, dim=1), self.value(features).squeeze(1)


def entropy_of(log_probs, allowed):
    terms = log_probs.exp() * log_probs
    return -torch.where(allowed, terms, torch.zeros_like(terms)).sum(dim=1)


def episode(packer, holds, greedy=False):
    holds.reset()
    chosen, values, entropies, gains, active = [], [], [], [], []
    for _ in range(PIECES):
        active.append(~holds.closed)
        allowed = holds.allowed()
        log_probs, value = packer(holds.observe(), allowed)
        if greedy:
            action = log_probs.argmax(dim=1)
        else:
            action = torch.multinomial(log_probs.detach().exp(), 1).squeeze(1)
        chosen.append(log_probs.gather(1, action.unsqueeze(1)).squeeze(1))
        values.append(value)
        entropies.append(entropy_of(log_probs, allowed))
        gains.append(holds.step(action))
    return tuple(torch.stack(rows) for rows in (chosen, values, entropies, gains, active))


def update(packer, holds, optimizer):
    chosen, values, entropies, gains, active = episode(packer, holds)
    returns = gains.flip(0).cumsum(0).flip(0)
    advantages = returns - values.detach()
    weight = active.float() / active.sum()
    policy_loss = -(weight * chosen * advantages).sum()
    value_loss = (weight * (returns - values).pow(2)).sum()
    loss = policy_loss + VALUE * value_loss - ENTROPY * (weight * entropies).sum()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(packer.parameters(), 1.0)
    if torch.isfinite(norm):
        optimizer.step()
    return gains.sum(0).mean().item(), loss.item()


packer, holds = Packer(), Holds()
optimizer = torch.optim.Adam(packer.parameters(), lr=3e-3)
for iteration in range(1, 91):
    packed, loss = update(packer, holds, optimizer)
    if iteration % 15 == 0:
        print(f"iteration {iteration:4d}  loss {loss:8.4f}  worth packed {packed:.3f}")

with torch.no_grad():
    worth = torch.stack([episode(packer, holds, greedy=True)[3].sum(0).mean() for _ in range(5)]).mean()
print(f"greedy worth {worth.item():.3f}")
