"""Temporal graph model with a memory per user: from a stream of events, predict whether the next event of a user
goes to a node of the group that the user currently prefers. The memory is advanced by a GRU after each batch."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

USERS, NOISE, BATCH = 60, 40, 60


class EventStream:
    """Every user carries a slowly switching preference; the events show it through a weak, hidden direction."""

    def __init__(self, rounds):
        direction = torch.zeros(NOISE)
        direction[:3] = torch.tensor([0.8, -0.8, 0.8])
        mood = torch.randint(2, (USERS,)).float()
        self.batches = []
        for _ in range(rounds):
            switch = torch.rand(USERS) < 0.05
            mood = torch.where(switch, 1 - mood, mood)
            users = torch.randperm(USERS)[:BATCH]
            features = torch.randn(BATCH, NOISE) + (2 * mood[users] - 1).unsqueeze(1) * direction
            item = torch.randint(2, (BATCH,)).float()
            label = (item == mood[users]).float()
            self.batches.append((users, item, features, label))


class Memory(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.updater = nn.GRUCell(NOISE, dim)
        self.register_buffer("state", torch.zeros(USERS, dim))

    def reset(self):
        self.state.zero_()

    def read(self, users):
        return self.state[users]

    def update(self, users, features):
        new = self.updater(features, self.state[users])
        self.state[users] = new.detach()


class LinkScorer(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.item = nn.Embedding(2, 8)
        self.net = nn.Sequential(nn.Linear(dim + 8, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, memory, item):
        return self.net(torch.cat([memory, self.item(item.long())], 1)).squeeze(1)


def run_epoch(stream, memory, scorer, optimizer=None):
    memory.reset()
    hits, count = 0.0, 0
    for users, item, features, label in stream.batches:
        logits = scorer(memory.read(users), item)
        loss = F.binary_cross_entropy_with_logits(logits, label)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        memory.update(users, features)
        hits += ((logits > 0).float() == label).float().sum().item()
        count += len(users)
    return hits / count


def main():
    train_stream, test_stream = EventStream(120), EventStream(120)
    memory, scorer = Memory(), LinkScorer()
    optimizer = torch.optim.Adam([*memory.parameters(), *scorer.parameters()], lr=4e-3)
    for epoch in range(10):
        train_accuracy = run_epoch(train_stream, memory, scorer, optimizer)
        if epoch % 3 == 0:
            print(f"epoch {epoch}: accuracy on the training stream {train_accuracy:.3f}")
    with torch.no_grad():
        accuracy = run_epoch(test_stream, memory, scorer)
    print(f"accuracy on the test stream {accuracy:.3f} (chance 0.5)")


if __name__ == "__main__":
    main()
