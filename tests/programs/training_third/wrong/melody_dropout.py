import torch
from torch import nn
import torch.nn.functional as F


class LockedDropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, h):
        if not self.training:
            return h
        mask = torch.bernoulli(torch.full((1, h.shape[1]), 1 - self.rate))
        return h * mask / (1 - self.rate)


class NoteModel(nn.Module):
    def __init__(self, pitches=16, context=4, width=64, drop=0.5):
        super().__init__()
        self.pitches, self.context = pitches, context
        self.fc = nn.Linear(pitches * context, width)
        self.drop = LockedDropout(drop)
        self.out = nn.Linear(width, pitches)

    def forward(self, notes):
        flat = F.one_hot(notes, self.pitches).float().flatten(1)
        return self.out(self.drop(torch.tanh(self.fc(flat))))

    @torch.no_grad()
    def continue_from(self, notes, length):
        was = self.training
        self.eval()
        notes = list(notes)
        for _ in range(length):
            context = torch.tensor([notes[-self.context:]])
            probs = F.softmax(self(context), dim=-1)
            notes.append(torch.multinomial(probs[0], 1).item())
        self.train(was)
        return notes


class Preview:
    def __init__(self, opening, length=6, seed=11):
        self.opening, self.length, self.seed = opening, length, seed

    def __call__(self, model):
        torch.manual_seed(self.seed)
        return model.continue_from(self.opening, self.length)


def tune(n, g):
    notes, current = [], 8
    for _ in range(n):
        current = (current + int(torch.randint(-2, 3, (1,), generator=g))) % 16
        notes.append(current)
    return torch.tensor(notes)


def train(model, notes, preview, steps=40, batch=16, lr=0.5):
    rows = notes.unfold(0, model.context + 1, 1)
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    g = torch.Generator().manual_seed(3)
    model.train()
    log = []
    for step in range(steps):
        pick = rows[torch.randint(0, len(rows), (batch,), generator=g)]
        loss = F.cross_entropy(model(pick[:, :-1]), pick[:, -1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append((loss.item(), preview(model)))
    return log


if __name__ == "__main__":
    torch.manual_seed(0)
    notes = tune(500, torch.Generator().manual_seed(9))
    model = NoteModel()
    log = train(model, notes, Preview([8, 9, 8, 7]))
    for k in (0, 19, 39):
        print(f"step {k} loss {log[k][0]:.3f} preview {log[k][1]}")
