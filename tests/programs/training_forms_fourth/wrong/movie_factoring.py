import random
import torch
import torch.nn as nn

random.seed(25)
torch.manual_seed(25)

N_USERS, N_ITEMS = 60, 40


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, dim=6):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, dim)
        self.item_factors = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user_factors.weight, std=0.1)
        nn.init.normal_(self.item_factors.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, users, items):
        dot = (self.user_factors(users) * self.item_factors(items)).sum(dim=1)
        return dot + self.user_bias(users).squeeze(1) + self.item_bias(items).squeeze(1)


class RatingBatches:
    def __init__(self, ratings, batch_size):
        self.ratings = ratings
        self.batch_size = batch_size

    def __iter__(self):
        random.shuffle(self.ratings)
        for i in range(0, len(self.ratings), self.batch_size):
            chunk = self.ratings[i:i + self.batch_size]
            yield chunk[:, 0].long(), chunk[:, 1].long(), chunk[:, 2]


def simulate_ratings(n):
    gen = torch.Generator().manual_seed(1)
    true_users = torch.randn(N_USERS, 3, generator=gen)
    true_items = torch.randn(N_ITEMS, 3, generator=gen)
    users = torch.randint(0, N_USERS, (n,))
    items = torch.randint(0, N_ITEMS, (n,))
    scores = (true_users[users] * true_items[items]).sum(1) * 0.5 + 0.1 * torch.randn(n)
    return torch.stack([users.float(), items.float(), scores], dim=1)


all_ratings = simulate_ratings(1700)
train_ratings, test_ratings = all_ratings[:1400].clone(), all_ratings[1400:].clone()
batches = RatingBatches(train_ratings, batch_size=70)
model = MatrixFactorization(N_USERS, N_ITEMS)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-5)
criterion = nn.MSELoss()

for epoch in range(1, 21):
    total, count = 0.0, 0
    for users, items, scores in batches:
        loss = criterion(model(users, items), scores)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    if epoch % 4 == 0:
        with torch.no_grad():
            pred = model(test_ratings[:, 0].long(), test_ratings[:, 1].long())
            rmse = criterion(pred, test_ratings[:, 2]).sqrt()
        print(f"epoch {epoch} train mse {total / count:.4f} test rmse {rmse:.4f}")
