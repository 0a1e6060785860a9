"""Matrix factorization of star ratings with biases and an L2 penalty on the factors."""
import torch
import torch.nn as nn

N_USERS, N_ITEMS, RANK = 150, 120, 16
PENALTY = 2e-3
EPOCHS = 25
BATCH = 256


def make_ratings(generator):
    """A low-rank table with noise, of which a small part is seen."""
    users = torch.randn(N_USERS, 3, generator=generator)
    items = torch.randn(N_ITEMS, 3, generator=generator)
    taste = 0.45 * users @ items.T + 0.4 * torch.randn(N_ITEMS, generator=generator)
    table = 3.4 + taste + 0.5 * torch.randn(N_USERS, N_ITEMS, generator=generator)
    cells = torch.randperm(N_USERS * N_ITEMS, generator=generator)[:4000]
    user, item = cells // N_ITEMS, cells % N_ITEMS
    rating = table[user, item].clamp(1, 5)
    cut = 3000
    return (user[:cut], item[:cut], rating[:cut]), (user[cut:], item[cut:], rating[cut:])


class FactorModel(nn.Module):
    def __init__(self, n_users, n_items, rank, mean):
        super().__init__()
        self.user = nn.Embedding(n_users, rank)
        self.item = nn.Embedding(n_items, rank)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.register_buffer("mean", mean)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        for bias in (self.user_bias, self.item_bias):
            nn.init.zeros_(bias.weight)

    def forward(self, user, item):
        match = (self.user(user) * self.item(item)).sum(-1)
        return self.mean + match + self.user_bias(user).squeeze(-1) + self.item_bias(item).squeeze(-1)


class Trainer:
    def __init__(self, model, lr=1e-2, penalty=PENALTY):
        self.model = model
        self.penalty = penalty
        self.params = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.Adam(self.params, lr=lr)
        self.criterion = nn.MSELoss()

    def regularizer(self):
        return sum(p.pow(2).sum() for p in self.params)

    def step(self, user, item, rating):
        fit = self.criterion(self.model(user, item), rating)
        loss = fit + self.penalty * self.regularizer()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return fit.item()

    def epoch(self, data, generator):
        self.model.train()
        user, item, rating = data
        total = 0.0
        for rows in torch.randperm(len(rating), generator=generator).split(BATCH):
            total += self.step(user[rows], item[rows], rating[rows]) * len(rows)
        return (total / len(rating)) ** 0.5

    @torch.no_grad()
    def rmse(self, data):
        self.model.eval()
        user, item, rating = data
        return (self.model(user, item).clamp(1, 5) - rating).pow(2).mean().sqrt().item()


def recommend(model, user, count=5):
    with torch.no_grad():
        items = torch.arange(N_ITEMS)
        scores = model(torch.full_like(items, user), items)
    return scores.topk(count).indices.tolist()


def main():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(21)
    train, held_out = make_ratings(generator)
    model = FactorModel(N_USERS, N_ITEMS, RANK, train[2].mean())
    trainer = Trainer(model)
    for epoch in range(1, EPOCHS + 1):
        rmse = trainer.epoch(train, generator)
        if epoch % 5 == 0:
            print(f"epoch {epoch:3d}  train rmse {rmse:.3f}  held-out rmse {trainer.rmse(held_out):.3f}")
    baseline = (held_out[2] - train[2].mean()).pow(2).mean().sqrt().item()
    print(f"rmse of the mean rating {baseline:.3f}")
    print("for user 0:", recommend(model, 0))
    return model, trainer.rmse(held_out)


if __name__ == "__main__":
    model, final_rmse = main()
