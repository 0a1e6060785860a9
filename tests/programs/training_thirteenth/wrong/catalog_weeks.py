"""Weekly retraining of a two-tower recommender on a growing catalogue.

Every week new articles arrive. Their rows are appended to the item table, and the training goes on from last
week's weights (and Adam moments) with that week's clicks; old users and old items stay as they were.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
N_USERS, DIM, TRUE_DIM = 300, 24, 6
START_ITEMS, NEW_PER_WEEK, WEEKS = 120, 40, 4
CLICKS_PER_WEEK, BATCH, EPOCHS = 6000, 250, 4

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

TOTAL_ITEMS = START_ITEMS + NEW_PER_WEEK * (WEEKS - 1)
user_taste = rng.standard_normal((N_USERS, TRUE_DIM))
item_traits = rng.standard_normal((TOTAL_ITEMS, TRUE_DIM))


def week_of_clicks(n_items, n):
    """Users pick among the articles on sale, the newest being shown more often."""
    users = rng.integers(0, N_USERS, n)
    logits = 1.5 * user_taste[users] @ item_traits[:n_items].T
    logits[:, max(0, n_items - NEW_PER_WEEK):] += 1.0
    gumbel = rng.gumbel(size=logits.shape)
    items = (logits + gumbel).argmax(axis=1)
    return torch.from_numpy(users), torch.from_numpy(items)


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user_table = nn.Embedding(n_users, dim)
        self.item_table = nn.Embedding(n_items, dim)
        nn.init.normal_(self.user_table.weight, std=0.1)
        nn.init.normal_(self.item_table.weight, std=0.1)
        self.user_head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, users):
        query = self.user_head(self.user_table(users)) + self.user_table(users)
        return query @ self.item_table.weight.T

    def add_items(self, n_new):
        old = self.item_table.weight.data
        mean, std = old.mean(dim=0), old.std(dim=0)
        fresh = mean + 0.1 * std * torch.randn(n_new, old.shape[1])
        self.item_table = nn.Embedding.from_pretrained(torch.cat([old, fresh]), freeze=False)


class WeeklyTrainer:
    def __init__(self, model, lr=5e-3):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, users, items):
        self.model.train()
        for _ in range(EPOCHS):
            order = torch.randperm(len(users))
            total = 0.0
            for rows in order.split(BATCH):
                loss = F.cross_entropy(self.model(users[rows]), items[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(rows)
        return total / len(users)

    @torch.no_grad()
    def recall_at(self, k, users, items):
        self.model.eval()
        top = self.model(users).topk(k, dim=1).indices
        return (top == items[:, None]).any(dim=1).float().mean().item()


def main():
    n_items = START_ITEMS
    model = TwoTower(N_USERS, n_items, DIM)
    trainer = WeeklyTrainer(model)
    recalls = []
    for week in range(WEEKS):
        if week > 0:
            model.add_items(NEW_PER_WEEK)
            n_items += NEW_PER_WEEK
        users, items = week_of_clicks(n_items, CLICKS_PER_WEEK)
        loss = trainer.fit(users, items)
        test_users, test_items = week_of_clicks(n_items, 2000)
        recalls.append(trainer.recall_at(10, test_users, test_items))
        print(f"week {week}: {n_items} items  loss {loss:.3f}  recall@10 {recalls[-1]:.3f}")
    return model, trainer, recalls


if __name__ == "__main__":
    model, trainer, recalls = main()
