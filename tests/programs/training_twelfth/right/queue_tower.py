"""Two-tower retrieval with a queue of earlier item vectors as extra negatives."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)

N_USERS, N_ITEMS, DIM, CONTENT = 400, 500, 16, 24
QUEUE = 512
TEMPERATURE = 0.15


def make_interactions(n):
    taste = F.normalize(torch.randn(N_USERS, 6), dim=1)
    topic = F.normalize(torch.randn(N_ITEMS, 6), dim=1)
    popularity = -0.5 * torch.log(1 + torch.arange(N_ITEMS, dtype=torch.float))
    probs = (6 * taste @ topic.T + popularity).softmax(1)
    users = torch.randint(0, N_USERS, (n,))
    items = torch.multinomial(probs[users], 1).squeeze(1)
    content = torch.tanh(topic @ torch.randn(6, CONTENT)) + 0.3 * torch.randn(N_ITEMS, CONTENT)
    return users, items, content


class UserTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(N_USERS, DIM, sparse=True)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, users):
        return F.normalize(self.proj(self.table(users)), dim=1)


class ItemTower(nn.Module):
    def __init__(self, content):
        super().__init__()
        self.content = nn.Embedding.from_pretrained(content, freeze=True)
        self.table = nn.Embedding(N_ITEMS, DIM, sparse=True)
        nn.init.zeros_(self.table.weight)
        self.proj = nn.Sequential(nn.Linear(CONTENT, 32), nn.ReLU(), nn.Linear(32, DIM))

    def forward(self, items):
        return F.normalize(self.proj(self.content(items)) + self.table(items), dim=1)


class ItemQueue:
    def __init__(self, size):
        self.vectors = torch.zeros(size, DIM)
        self.ids = torch.full((size,), -1)
        self.head = 0

    @torch.no_grad()
    def push(self, vectors, ids):
        slots = (self.head + torch.arange(len(ids))) % len(self.ids)
        self.vectors[slots] = vectors
        self.ids[slots] = ids
        self.head = int(slots[-1] + 1) % len(self.ids)


def contrastive_loss(u, v, items, queue, log_q):
    filled = queue.ids >= 0
    bank = torch.cat([v, queue.vectors[filled]])
    bank_ids = torch.cat([items, queue.ids[filled]])
    logits = u @ bank.T / TEMPERATURE - log_q[bank_ids]
    positive = torch.arange(len(items))
    same = items[:, None] == bank_ids[None, :]
    same[positive, positive] = False
    return F.cross_entropy(logits.masked_fill(same, float("-inf")), positive)


@torch.no_grad()
def recall(user_tower, item_tower, users, items, k=20):
    scores = user_tower(users) @ item_tower(torch.arange(N_ITEMS)).T
    top = scores.topk(k, dim=1).indices
    return (top == items[:, None]).any(1).float().mean().item()


def main(epochs=8, batch=128):
    users, items, content = make_interactions(13000)
    split = 12000
    log_q = torch.log((torch.bincount(items[:split], minlength=N_ITEMS) + 1.0) / split)
    user_tower, item_tower = UserTower(), ItemTower(content)
    tables = [user_tower.table.weight, item_tower.table.weight]
    dense = [*user_tower.proj.parameters(), *item_tower.proj.parameters()]
    optimizers = [torch.optim.SparseAdam(tables, lr=5e-3), torch.optim.AdamW(dense, lr=3e-3)]
    queue = ItemQueue(QUEUE)

    for epoch in range(epochs):
        total, seen = 0.0, 0
        for idx in torch.randperm(split).split(batch):
            u, v = user_tower(users[idx]), item_tower(items[idx])
            loss = contrastive_loss(u, v, items[idx], queue, log_q)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            queue.push(v.detach(), items[idx])
            total, seen = total + loss.item() * len(idx), seen + len(idx)
        score = recall(user_tower, item_tower, users[split:], items[split:])
        print(f"epoch {epoch + 1}  loss {total / seen:.3f}  recall@20 {score:.3f}")
    return score


if __name__ == "__main__":
    score = main()
    print(f"recall@20 {score:.3f}  (chance {20 / N_ITEMS:.3f})")
