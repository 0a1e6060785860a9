"""Track recommender (BPR matrix factorisation) that is warm-started every day from yesterday's checkpoint."""
import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_USERS, CAPACITY, DIM = 200, 256, 16


class World:
    """Listeners and tracks with hidden tastes; gives one log of (user, track name) per day."""

    def __init__(self, seed=5, n_tracks=180):
        self.rng = np.random.default_rng(seed)
        self.users = self.rng.normal(size=(N_USERS, 4))
        self.tracks = self.rng.normal(size=(n_tracks, 4))
        self.names = np.array([f"trk_{i:04x}" for i in self.rng.permutation(n_tracks)])

    def sample(self, first, last, count):
        """`count` plays among the tracks released so far, first..last."""
        scores = 1.5 * self.users @ self.tracks[first:last].T
        prob = np.exp(scores - scores.max(1, keepdims=True))
        prob /= prob.sum(1, keepdims=True)
        users = self.rng.integers(0, N_USERS, size=count)
        picks = [first + self.rng.choice(last - first, p=prob[u]) for u in users]
        return [(int(u), str(self.names[p])) for u, p in zip(users, picks)]


def build_index(log):
    index = {}
    for _, name in log:
        index.setdefault(name, len(index))
    return index


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(N_USERS, DIM)
        self.track = nn.Embedding(CAPACITY, DIM)  # spare rows for coming releases
        self.bias = nn.Embedding(CAPACITY, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.track.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, tracks):
        return (self.user(users) * self.track(tracks)).sum(-1) + self.bias(tracks).squeeze(-1)


class DailyJob:
    def __init__(self, log, lr=0.02):
        self.index = build_index(log)
        self.log = log
        self.model = Factors()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def save(self, target):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, target)

    def restore(self, source):
        state = torch.load(source)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def encode(self, log):
        known = [(u, self.index[name]) for u, name in log if name in self.index]
        return torch.tensor(known).T

    def fit(self, epochs, batch_size=256):
        users, tracks = self.encode(self.log)
        for epoch in range(epochs):
            total = 0.0
            for rows in torch.randperm(len(users)).split(batch_size):
                negatives = torch.randint(len(self.index), (len(rows),))
                gap = self.model(users[rows], tracks[rows]) - self.model(users[rows], negatives)
                loss = -F.logsigmoid(gap).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows)
            print(f"  epoch {epoch}  bpr loss {total / len(users):.4f}")

    @torch.no_grad()
    def auc(self, log):
        users, tracks = self.encode(log)
        everything = torch.arange(len(self.index)).expand(len(users), -1)
        scores = self.model(users.unsqueeze(1).expand_as(everything), everything)
        return (self.model(users, tracks).unsqueeze(1) > scores).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    world = World()
    monday, tuesday = world.sample(0, 160, 9000), world.sample(0, 180, 3000)
    holdout = world.sample(0, 180, 1500)
    checkpoint = io.BytesIO()
    print("monday")
    job = DailyJob(monday)
    job.fit(epochs=12)
    job.save(checkpoint)
    print(f"monday holdout auc {job.auc(holdout):.3f}")
    checkpoint.seek(0)
    print("tuesday")
    job = DailyJob(tuesday)
    job.restore(checkpoint)
    job.fit(epochs=4)
    print(f"tuesday holdout auc {job.auc(holdout):.3f}")
