import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self, users, movies, dim=12):
        super().__init__()
        self.tables = nn.ModuleDict({
            "user": nn.Embedding(users, dim), "movie": nn.Embedding(movies, dim)})
        self.bias = nn.Parameter(torch.zeros(movies))
        for t in self.tables.values():
            nn.init.normal_(t.weight, std=0.2)

    def forward(self, user, movie):
        u, m = self.tables["user"](user), self.tables["movie"](movie)
        if movie.dim() == 2:
            u = u.unsqueeze(1)
        return (u * m).sum(-1) + self.bias[movie]


class Miner:
    def __init__(self, model, movies, pool=10):
        self.model, self.movies, self.pool = model, movies, pool

    @torch.no_grad()
    def hardest(self, user):
        pool = torch.randint(0, self.movies, (len(user), self.pool))
        scores = self.model(user, pool)
        best = scores.argmax(1, keepdim=True)
        return pool.gather(1, best).squeeze(1), scores.gather(1, best).squeeze(1)


def hinge(good, bad, margin=0.5):
    return torch.clamp(margin - good + bad, min=0).mean()


def taste(n, users, movies):
    user = torch.randint(0, users, (n,))
    movie = (user * 3 + torch.randint(0, 8, (n,))) % movies
    return user, movie


def main():
    torch.manual_seed(19)
    users, movies = 40, 60
    model = Towers(users, movies)
    miner = Miner(model, movies)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, 201):
        user, movie = taste(128, users, movies)
        rival, rival_score = miner.hardest(user)
        loss = hinge(model(user, movie), model(user, rival))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        user, movie = taste(1000, users, movies)
        other = torch.randint(0, movies, (1000,))
        auc = (model(user, movie) > model(user, other)).float().mean().item()
    print(f"auc {auc:.4f}")


main()
