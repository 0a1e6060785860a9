import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ClickModel(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.tower = nn.Sequential(nn.Linear(3 * dim, 24), nn.SiLU(), nn.Linear(24, 1))

    def tables(self):
        return [self.user.weight, self.item.weight]

    def forward(self, user, item):
        u, v = self.user(user), self.item(item)
        return self.tower(torch.cat([u, v, u * v], -1)).squeeze(-1)


def click_log(users, items):
    taste, topic = torch.randn(users, 2), torch.randn(items, 2)
    user = torch.arange(users).repeat_interleave(12)
    item = torch.stack([torch.randperm(items)[:12] for _ in range(users)]).flatten()
    clicked = torch.rand(len(user)) < torch.sigmoid(3 * (taste[user] * topic[item]).sum(-1))
    return TensorDataset(user, item, clicked.float())


def main():
    torch.manual_seed(0)
    loader = DataLoader(click_log(50, 30), batch_size=64, shuffle=True)
    model = ClickModel(50, 30, 8)
    table_optimizer = torch.optim.SparseAdam(model.tables(), lr=2e-2)
    tower_optimizer = torch.optim.Adam(model.tower.parameters(), lr=5e-3)
    for epoch in range(5):
        total, correct = 0.0, 0
        for user, item, clicked in loader:
            logits = model(user, item)
            loss = F.binary_cross_entropy_with_logits(logits, clicked)
            table_optimizer.zero_grad()
            tower_optimizer.zero_grad()
            loss.backward()
            table_optimizer.step()
            tower_optimizer.step()
            total += loss.item() * len(user)
            correct += ((logits > 0) == (clicked > 0.5)).sum().item()
        size = len(loader.dataset)
        print(f"epoch {epoch} loss {total / size:.4f} acc {correct / size:.3f}")


if __name__ == "__main__":
    main()
