import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call


class TypingModel(nn.Module):
    def __init__(self, inputs=8, width=24, outputs=4):
        super().__init__()
        self.hidden = nn.Linear(inputs, width)
        self.out = nn.Linear(width, outputs)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def key_of(name):
    return name.replace(".", "_")


class PersonalOffsets(nn.Module):
    def __init__(self, base, users):
        super().__init__()
        self.per_user = nn.ModuleList(
            nn.ParameterDict({key_of(n): nn.Parameter(torch.zeros_like(p)) for n, p in base.named_parameters()})
            for _ in range(users)
        )

    def weights_for(self, user, base):
        shift = self.per_user[user]
        return {key_of(n): p + shift[key_of(n)] for n, p in base.named_parameters()}

    def penalty(self, user):
        return sum(p.pow(2).sum() for p in self.per_user[user].values())


class PersonalisedTrainer:
    def __init__(self, base, offsets, lr=5e-3, ridge=1e-3):
        self.base, self.offsets, self.ridge = base, offsets, ridge
        self.opt = torch.optim.Adam([*base.parameters(), *offsets.parameters()], lr=lr)

    def loss(self, user, x, y):
        weights = self.offsets.weights_for(user, self.base)
        logits = functional_call(self.base, weights, (x,))
        return F.cross_entropy(logits, y) + self.ridge * self.offsets.penalty(user)

    def round(self, data):
        self.opt.zero_grad()
        losses = [self.loss(u, x, y) for u, (x, y) in enumerate(data)]
        torch.stack(losses).mean().backward()
        self.opt.step()
        return [v.item() for v in losses]


def typists(users, n, g):
    shared = torch.randn(8, 4, generator=g)
    data = []
    for _ in range(users):
        own = shared + 1.5 * torch.randn(8, 4, generator=g)
        x = torch.randn(n, 8, generator=g)
        data.append((x, (x @ own).argmax(-1)))
    return data


if __name__ == "__main__":
    torch.manual_seed(0)
    data = typists(3, 80, torch.Generator().manual_seed(6))
    base = TypingModel()
    trainer = PersonalisedTrainer(base, PersonalOffsets(base, 3))
    for r in range(60):
        losses = trainer.round(data)
        if r % 15 == 14:
            print(r + 1, [round(v, 3) for v in losses])
