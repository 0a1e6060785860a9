import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(55)
USERS, SONGS, WIDTH = 60, 90, 8


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ParameterDict(
            {
                "user": nn.Parameter(0.3 * torch.randn(USERS, WIDTH)),
                "song": nn.Parameter(0.3 * torch.randn(SONGS, WIDTH)),
                "bias": nn.Parameter(torch.zeros(SONGS)),
            }
        )

    def forward(self, users, songs):
        t = self.tables
        return torch.einsum("bw,bkw->bk", t["user"][users], t["song"][songs]) + t["bias"][songs]


class HardMiner:
    def __init__(self, model, pool=12, top=3):
        self.model, self.pool, self.top = model, pool, top

    @torch.no_grad()
    def pick(self, users):
        songs = torch.randint(SONGS, (len(users), self.pool))
        best = self.model(users, songs).topk(self.top, dim=1)
        return songs.gather(1, best.indices), best.values


def history(n):
    taste, style = torch.randn(USERS, 3), torch.randn(SONGS, 3)
    users = torch.randint(USERS, (n,))
    songs = torch.multinomial(torch.softmax(2 * taste[users] @ style.T, 1), 1)
    return users, songs


def rank_loss(model, miner, users, liked):
    songs, _ = miner.pick(users)
    rivals = model(users, songs)
    own = model(users, liked).expand_as(rivals)
    return F.margin_ranking_loss(own, rivals, torch.ones_like(own), margin=0.5)


users, songs = history(1500)
model = TwoTower()
miner = HardMiner(model)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    running = []
    for rows in torch.randperm(1200).split(100):
        loss = rank_loss(model, miner, users[rows], songs[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running.append(loss.item())
    print(f"epoch {epoch}: loss {sum(running) / len(running):.4f}")

with torch.no_grad():
    every = torch.arange(SONGS).expand(300, SONGS)
    order = model(users[1200:], every)
    place = (order > order.gather(1, songs[1200:])).sum(1).float()
print(f"mean rank of the next song {place.mean():.2f}")
