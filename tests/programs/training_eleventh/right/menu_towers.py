"""Restaurant dish recommender with two towers: user tower steps every batch, dish tower every few batches."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
rng = np.random.default_rng(2)
USERS, DISHES, TAGS, SLOW = 500, 150, 20, 4


def make_orders(per_user=30):
    taste = rng.normal(size=(USERS, 5))
    mixing = rng.normal(size=(TAGS, 5))
    tags = (rng.random((DISHES, TAGS)) < 0.2).astype(np.float32)
    flavour = tags @ mixing / 2 + 0.6 * rng.normal(size=(DISHES, 5))
    popularity = rng.normal(size=DISHES)
    score = taste @ flavour.T / 1.5 + popularity
    p = np.exp(score - score.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    orders = [(u, d) for u in range(USERS) for d in rng.choice(DISHES, per_user, p=p[u])]
    orders = torch.tensor(np.array(orders))[torch.from_numpy(rng.permutation(len(orders)))]
    cut = int(0.85 * len(orders))
    return orders[:cut], orders[cut:], torch.from_numpy(tags)


class UserTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.table = nn.Embedding(USERS, dim, sparse=True)
        nn.init.normal_(self.table.weight, std=0.1)

    def forward(self, users):
        return self.table(users)


class DishTower(nn.Module):
    """Tags through a shared matrix plus a vector of its own for every dish."""

    def __init__(self, tags, dim):
        super().__init__()
        self.register_buffer("tags", tags)
        self.by_tag = nn.Linear(TAGS, dim, bias=False)
        self.own = nn.Parameter(torch.zeros(len(tags), dim))
        self.bias = nn.Parameter(torch.zeros(len(tags)))

    def forward(self):
        return self.by_tag(self.tags) + self.own, self.bias


@torch.no_grad()
def recall(user_tower, dish_tower, orders, k=10):
    vectors, bias = dish_tower()
    top = (user_tower(orders[:, 0]) @ vectors.T + bias).topk(k).indices
    return (top == orders[:, 1:]).any(1).float().mean().item()


train, test, tags = make_orders()
users, dishes = UserTower(24), DishTower(tags, 24)
fast = torch.optim.SparseAdam(list(users.parameters()), lr=1e-2)
slow = torch.optim.AdamW(
    [
        {"params": [dishes.by_tag.weight, dishes.own], "weight_decay": 1e-2},
        {"params": [dishes.bias], "weight_decay": 0.0},
    ],
    lr=1e-2,
)
popular = torch.bincount(train[:, 1], minlength=DISHES).topk(10).indices
print(f"recall@10 of the most ordered dishes {(test[:, 1:] == popular).any(1).float().mean():.3f}")

batches = 0
for epoch in range(6):
    total = 0.0
    for idx in torch.randperm(len(train)).split(128):
        vectors, bias = dishes()
        logits = users(train[idx, 0]) @ vectors.T + bias
        loss = F.cross_entropy(logits, train[idx, 1])
        loss.backward()
        fast.step()
        fast.zero_grad()
        batches += 1
        if batches % SLOW == 0:
            for p in dishes.parameters():
                p.grad /= SLOW
            slow.step()
            slow.zero_grad()
        total += loss.item() * len(idx)
    print(f"epoch {epoch + 1}  loss {total / len(train):.4f}  recall@10 {recall(users, dishes, test):.3f}")

moved = sum((p.detach().norm() ** 2).item() for p in (dishes.own, dishes.bias)) ** 0.5
print(f"dish vectors and biases: norm {moved:.2f} after {batches // SLOW} slow steps")
