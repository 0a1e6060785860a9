import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
USERS, GENRES, PER_GENRE, WIDTH = 300, 8, 4, 32
ITEMS = GENRES * PER_GENRE


def make_stream(rounds):
    """Each user walks through the genres with a stride of their own; events come round by round."""
    genre = torch.randint(GENRES, (USERS,))
    stride = torch.randint(1, GENRES, (USERS,))
    events = []
    for _ in range(rounds):
        restless = torch.rand(USERS) < 0.03
        stride = torch.where(restless, torch.randint(1, GENRES, (USERS,)), stride)
        genre = (genre + stride) % GENRES
        item = genre * PER_GENRE + torch.randint(PER_GENRE, (USERS,))
        active = torch.randperm(USERS)
        for users in active.split(100):
            events.append((users, item[users]))
    return events


class TemporalRecommender(nn.Module):
    """Keeps one memory vector per user, read before an event and rewritten after it."""

    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(ITEMS, WIDTH)
        self.message = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.updater = nn.GRUCell(WIDTH, WIDTH)
        self.decoder = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, WIDTH))
        self.bias = nn.Parameter(torch.zeros(ITEMS))
        self.register_buffer("memory", torch.zeros(USERS, WIDTH))

    def reset(self):
        self.memory = torch.zeros_like(self.memory)

    def forward(self, users):
        query = self.decoder(self.memory[users])
        return query @ self.item.weight.T / WIDTH ** 0.5 + self.bias

    def absorb(self, users, items):
        past = self.memory.clone()
        message = self.message(self.item(items))
        past[users] = self.updater(message, past[users])
        self.memory = past.detach()


def train_epoch(model, events, optimizer):
    model.train()
    model.reset()
    total, count = 0.0, 0
    for users, items in events:
        loss = F.cross_entropy(model(users), items)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.absorb(users, items)
        total += loss.item() * len(users)
        count += len(users)
    return total / count


@torch.no_grad()
def evaluate(model, events, warmup):
    model.eval()
    model.reset()
    right = count = 0
    for position, (users, items) in enumerate(events):
        if position >= warmup:
            guess = model(users).argmax(1) // PER_GENRE
            right += (guess == items // PER_GENRE).sum().item()
            count += len(users)
        model.absorb(users, items)
    return right / count


train_events, test_events = make_stream(80), make_stream(30)
model = TemporalRecommender()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
losses = [train_epoch(model, train_events, optimizer) for _ in range(8)]
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}  genre accuracy {evaluate(model, test_events, 15):.3f}  "
      f"(chance {1 / GENRES:.3f})")
