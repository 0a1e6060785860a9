import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(11)
LANES, WINDOW = 16, 24


def genome(length):
    motif = torch.tensor([0, 2, 1, 3, 3, 1, 0, 1, 2])
    out = motif.repeat(length // len(motif) + 1)[:length].clone()
    flip = torch.rand(length) < 0.08
    out[flip] = torch.randint(0, 4, (int(flip.sum()),))
    return out


def to_lanes(sequence, lanes):
    per_lane = len(sequence) // lanes
    usable = sequence[: per_lane * lanes]
    return torch.stack(usable.split(lanes))


class BaseModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.code = nn.Embedding(4, dim)
        self.rnn = nn.LSTM(dim, dim)
        self.out = nn.Linear(dim, 4)

    def forward(self, bases, state=None):
        h, state = self.rnn(self.code(bases), state)
        return self.out(h), tuple(s.detach() for s in state)


def windows(lanes):
    for start in range(0, lanes.size(0) - 1, WINDOW):
        stop = min(start + WINDOW, lanes.size(0) - 1)
        yield lanes[start:stop], lanes[start + 1 : stop + 1]


lanes = to_lanes(genome(6_000), LANES)
model = BaseModel()
opt = torch.optim.Adam(model.parameters(), lr=8e-3)
for epoch in range(5):
    state, losses = None, []
    for inputs, targets in windows(lanes):
        logits, state = model(inputs, state)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: nats per base {sum(losses) / len(losses):.4f}")
