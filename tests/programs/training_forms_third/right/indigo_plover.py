import torch
from torch import nn

torch.manual_seed(17)
USERS, ITEMS, WIDTH = 60, 90, 12


class Tower(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.table = nn.Embedding(count, WIDTH)
        nn.init.normal_(self.table.weight, std=0.3)

    def forward(self, index):
        return self.table(index)

    @torch.no_grad()
    def seed(self, index, vectors):
        self.table.weight.index_copy_(0, index, vectors)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(USERS), Tower(ITEMS)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)


taste, style = torch.randn(USERS, WIDTH), torch.randn(ITEMS, WIDTH)
likes = taste @ style.t() / WIDTH ** 0.5
content = torch.cat([style, torch.randn(ITEMS, 4)], dim=1)
warm, cold = torch.arange(70), torch.arange(70, ITEMS)
model = Ranker()
opt = torch.optim.Adam(model.parameters(), lr=2e-2)


def fit(pool, steps):
    for it in range(steps):
        u = torch.randint(USERS, (128,))
        i = pool[torch.randint(len(pool), (128,))]
        loss = (model(u, i) - likes[u, i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


print("warm items", fit(warm, 300))
known = model.item.table.weight.detach()[warm]
bridge = torch.linalg.lstsq(content[warm], known).solution
model.item.seed(cold, content[cold] @ bridge)
with torch.no_grad():
    print("cold items before", (model(torch.arange(USERS)[:, None], cold[None]) - likes[:, cold]).pow(2).mean().item())
print("all items", fit(torch.arange(ITEMS), 30))
