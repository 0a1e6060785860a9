import torch
from torch import nn
import torch.nn.functional as F

N_ITEMS, N_GROUPS, MAX_LEN, DIM = 300, 15, 20, 32


def make_sessions(n, generator):
    """Sessions of item ids 1..N_ITEMS, filled up with 0; the next item comes from the session's interest group."""
    group_of = torch.arange(N_ITEMS) % N_GROUPS
    members = [torch.nonzero(group_of == g).flatten() + 1 for g in range(N_GROUPS)]
    history = torch.zeros(n, MAX_LEN, dtype=torch.long)
    target = torch.zeros(n, dtype=torch.long)
    lengths = torch.randint(2, MAX_LEN + 1, (n,), generator=generator)
    for i in range(n):
        k, g = int(lengths[i]), int(torch.randint(N_GROUPS, (1,), generator=generator))
        pool = members[g]
        picks = pool[torch.randint(len(pool), (k + 1,), generator=generator)]
        noise = torch.rand(k, generator=generator) < 0.4
        strangers = torch.randint(1, N_ITEMS + 1, (k,), generator=generator)
        history[i, :k] = torch.where(noise, strangers, picks[:k])
        target[i] = picks[k]
    return history, target


class UserTower(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.items = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.project = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, history):
        lengths = (history > 0).sum(1, keepdim=True)
        pooled = self.items(history).sum(1) / lengths
        return F.normalize(self.project(pooled) + pooled, dim=-1)


class ItemTower(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.table = nn.Embedding(n_items, dim)

    def forward(self, ids):
        return F.normalize(self.table(ids - 1), dim=-1)


class Retriever(nn.Module):
    def __init__(self, n_items=N_ITEMS, dim=DIM):
        super().__init__()
        self.user = UserTower(n_items, dim)
        self.item = ItemTower(n_items, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.5)

    def forward(self, history, candidates):
        return self.log_scale.exp() * self.user(history) @ self.item(candidates).T


@torch.no_grad()
def recall_at(model, history, target, k=20):
    model.eval()
    scores = model(history, torch.arange(1, N_ITEMS + 1))
    top = scores.topk(k, dim=1).indices + 1
    return (top == target[:, None]).any(1).float().mean().item()


generator = torch.Generator().manual_seed(3)
torch.manual_seed(3)
train_history, train_target = make_sessions(2000, generator)
test_history, test_target = make_sessions(1000, generator)
model = Retriever()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
everything = torch.arange(1, N_ITEMS + 1)
for epoch in range(10):
    model.train()
    running = 0.0
    order = torch.randperm(len(train_history), generator=generator)
    for idx in order.split(100):
        logits = model(train_history[idx], everything)
        loss = F.cross_entropy(logits, train_target[idx] - 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {running / len(order):.3f}")
recall = recall_at(model, test_history, test_target)
print(f"recall@20 {recall:.3f}")
