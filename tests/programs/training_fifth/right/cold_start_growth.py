"""Two-tower recommender; the item table grows in place of the old one and the optimizer follows it."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)

N_USERS, N_OLD, N_NEW, RANK = 100, 50, 25, 8
truth_u, truth_i = torch.randn(N_USERS, 3), torch.randn(N_OLD + N_NEW, 3)
ratings = truth_u @ truth_i.T + 0.2 * torch.randn(N_USERS, N_OLD + N_NEW)
observed = torch.rand_like(ratings) < 0.5


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, rank):
        super().__init__()
        self.user_table = nn.Embedding(n_users, rank)
        self.user_tower = nn.Sequential(nn.Linear(rank, 32), nn.ReLU(), nn.Linear(32, rank))
        self.item_table = nn.Embedding(n_items, rank)

    def forward(self, u, i):
        return (self.user_tower(self.user_table(u)) * self.item_table(i)).sum(-1)


def grow(model, optimizer, n_new):
    """Replace the item table by a larger one; hand the new parameter and padded moments to the optimizer."""
    old = model.item_table.weight
    table = nn.Embedding(old.shape[0] + n_new, old.shape[1])
    with torch.no_grad():
        table.weight[: old.shape[0]] = old
    model.item_table = table
    for group in optimizer.param_groups:
        group["params"] = [table.weight if p is old else p for p in group["params"]]
    state = optimizer.state.pop(old, None)
    if state:
        pad = torch.zeros(n_new, old.shape[1])
        optimizer.state[table.weight] = {
            "step": state["step"],
            "exp_avg": torch.cat([state["exp_avg"], pad]),
            "exp_avg_sq": torch.cat([state["exp_avg_sq"], pad]),
        }


def run_epoch(model, optimizer, n_items):
    pairs = observed[:, :n_items].nonzero()
    pairs = pairs[torch.randperm(len(pairs))]
    total = 0.0
    for chunk in pairs.split(200):
        u, i = chunk.T
        loss = F.mse_loss(model(u, i), ratings[u, i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(chunk)
    return total / len(pairs)


@torch.no_grad()
def rmse(model, columns):
    u, i = (~observed[:, columns]).nonzero().T
    i = i + columns.start
    return F.mse_loss(model(u, i), ratings[u, i]).sqrt().item()


model = TwoTower(N_USERS, N_OLD, RANK)
optimizer = torch.optim.Adam(model.parameters(), lr=0.015)
n_items = N_OLD
for epoch in range(20):
    if epoch == 8:
        grow(model, optimizer, N_NEW)
        n_items += N_NEW
    mse = run_epoch(model, optimizer, n_items)
    if epoch % 5 == 4:
        print(f"epoch {epoch:2d}  items {n_items}  train mse {mse:.3f}")
print(f"held-out rmse: old {rmse(model, slice(0, N_OLD)):.3f}  new {rmse(model, slice(N_OLD, N_OLD + N_NEW)):.3f}"
      f"  (rating std {ratings.std():.3f})")
