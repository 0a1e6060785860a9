import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(12)
PEOPLE, FILMS = 50, 30


class Towers(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.person = nn.Sequential(nn.Embedding(PEOPLE, 16), nn.ReLU(), nn.Linear(16, dim))
        self.film = nn.Sequential(nn.Embedding(FILMS, 16), nn.ReLU(), nn.Linear(16, dim))
        self.offset = nn.ParameterDict({
            "film": nn.Parameter(torch.zeros(FILMS)),
            "all": nn.Parameter(torch.zeros(())),
        })

    def forward(self, p, f):
        match = (self.person(p) * self.film(f)).sum(-1)
        return match + self.offset["film"][f] + self.offset["all"]


liking = 0.3 * torch.randn(PEOPLE, FILMS) + torch.randn(FILMS) + 2.5


def ratings(n):
    p, f = torch.randint(PEOPLE, (n,)), torch.randint(FILMS, (n,))
    return p, f, liking[p, f]


model = Towers()
opt = torch.optim.Adam(model.parameters(), lr=0.02)
wanted = [*model.person.parameters(), *model.film.parameters()]


def train_step(batch):
    p, f, y = batch
    loss = F.smooth_l1_loss(model(p, f), y)
    opt.zero_grad()
    loss.backward(inputs=wanted)
    opt.step()
    return loss.item()


for step in range(100):
    value = train_step(ratings(96))
    if step % 25 == 24:
        print(f"{step + 1} loss {value:.4f} global {model.offset['all'].item():.3f}")
