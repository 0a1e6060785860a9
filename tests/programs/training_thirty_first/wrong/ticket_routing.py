"""Route support tickets to teams with averaged word vectors.

The vocabulary consists of words with published vectors, which stay as published so that the index of
the search service remains valid, and of product words without vectors, whose rows are learned here.
"""
import torch
import torch.nn.functional as F
from torch import nn

PUBLISHED = 120
PRODUCT = 40
DIM = 24
TEAMS = 4


def published_vectors(generator):
    topics = torch.randn(TEAMS, DIM, generator=generator)
    owner = torch.arange(PUBLISHED) % TEAMS
    noise = torch.randn(PUBLISHED, DIM, generator=generator)
    return F.normalize(0.5 * topics[owner] + noise, dim=1)


def make_tickets(count, generator, length=10):
    team = torch.randint(TEAMS, (count,), generator=generator)
    general = torch.randint(PUBLISHED // TEAMS, (count, length - 2), generator=generator) * TEAMS
    off_topic = torch.randint(TEAMS, (count, length - 2), generator=generator)
    on_topic = torch.rand(count, length - 2, generator=generator) < 0.25
    general = general + torch.where(on_topic, team[:, None], off_topic)
    product = torch.randint(PRODUCT // TEAMS, (count, 2), generator=generator) * TEAMS
    odd = torch.randint(TEAMS, (count, 2), generator=generator)
    product = PUBLISHED + product + torch.where(torch.rand(count, 2, generator=generator) < 0.7, team[:, None], odd)
    return torch.cat([general, product], dim=1), team


class TicketRouter(nn.Module):
    def __init__(self, vectors, hidden=32):
        super().__init__()
        self.words = nn.Embedding(PUBLISHED + PRODUCT, DIM)
        nn.init.normal_(self.words.weight, std=0.1)
        with torch.no_grad():
            self.words.weight[:PUBLISHED] = vectors
        learned = torch.ones(PUBLISHED + PRODUCT, 1)
        learned[:PUBLISHED] = 0.0
        self.register_buffer("learned", learned)
        self.words.weight.register_hook(self.keep_published)
        self.head = nn.Sequential(nn.Linear(DIM, hidden), nn.ReLU(), nn.Linear(hidden, TEAMS))

    def keep_published(self, grad):
        return grad * self.learned

    def forward(self, tickets):
        return self.head(self.words(tickets).mean(dim=1))


def train(model, tickets, teams, epochs=12, batch=64):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    steps_per_epoch = len(tickets) // batch
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.3, total_iters=epochs * steps_per_epoch)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        order = torch.randperm(len(tickets))[: steps_per_epoch * batch]
        for pick in order.split(batch):
            loss = F.cross_entropy(model(tickets[pick]), teams[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  loss {total / steps_per_epoch:.4f}")


@torch.no_grad()
def accuracy(model, tickets, teams):
    model.eval()
    return (model(tickets).argmax(dim=1) == teams).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(30)
    vectors = published_vectors(generator)
    tickets, teams = make_tickets(1600, generator)
    test_tickets, test_teams = make_tickets(400, generator)
    model = TicketRouter(vectors)
    train(model, tickets, teams)
    test_accuracy = accuracy(model, test_tickets, test_teams)
    table = model.words.weight.detach()
    print(f"test accuracy {test_accuracy:.3f}")
    print(f"mean length of the learned rows {table[PUBLISHED:].norm(dim=1).mean():.3f}")
