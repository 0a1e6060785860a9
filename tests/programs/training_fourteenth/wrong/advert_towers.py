"""Two-tower retrieval for ads with in-batch negatives and a logQ popularity correction."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 7
N_USERS, N_ADS, DIM = 200, 400, 16
BATCH = 256
STEPS = 360


def make_clicks(rng, n=24000):
    user_taste = rng.normal(size=(N_USERS, 3))
    ad_topic = rng.normal(size=(N_ADS, 3))
    popularity = 1.0 / (1.0 + np.arange(N_ADS)) ** 0.9
    popularity /= popularity.sum()
    users = rng.integers(0, N_USERS, size=n)
    ads = np.empty(n, dtype=np.int64)
    affinity = user_taste @ ad_topic.T
    for i, u in enumerate(users):
        logits = 0.9 * affinity[u] + np.log(popularity)
        ads[i] = np.argmax(logits + rng.gumbel(size=N_ADS))
    return users, ads


class Tower(nn.Module):
    def __init__(self, n_ids, dim):
        super().__init__()
        self.emb = nn.Embedding(n_ids, 32)
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))
        nn.init.normal_(self.emb.weight, std=0.3)

    def forward(self, ids):
        return F.normalize(self.net(self.emb(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = Tower(N_USERS, DIM)
        self.ad = Tower(N_ADS, DIM)
        self.log_temp = nn.Parameter(torch.tensor(math.log(5.0)))

    def forward(self, users, ads):
        return self.log_temp.exp() * self.user(users) @ self.ad(ads).T


def in_batch_loss(model, users, ads, log_q):
    """Sampled softmax over the ads of the batch, corrected for how often each ad is drawn."""
    logits = model(users, ads)
    logits = logits - log_q[ads].unsqueeze(1)
    same = ads.unsqueeze(0) == ads.unsqueeze(1)
    same.fill_diagonal_(False)
    logits = logits.masked_fill(same, float("-inf"))
    return F.cross_entropy(logits, torch.arange(len(users)))


@torch.no_grad()
def recall_at(model, users, relevant, k=20):
    model.eval()
    scores = model(users, torch.arange(N_ADS))
    top = scores.topk(k, dim=1).indices
    hits = (top == relevant.unsqueeze(1)).any(dim=1)
    model.train()
    return hits.float().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    users, ads = make_clicks(rng)
    users, ads = torch.from_numpy(users), torch.from_numpy(ads)
    n_train = 20000
    counts = torch.bincount(ads[:n_train], minlength=N_ADS).float()
    log_q = torch.log((counts + 1) / (counts.sum() + N_ADS))

    model = TwoTower()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    for step in range(STEPS):
        idx = torch.randint(0, n_train, (BATCH,))
        loss = in_batch_loss(model, users[idx], ads[idx], log_q)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 90 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  temp {model.log_temp.exp().item():.2f}")

    val_users, val_ads = users[n_train:], ads[n_train:]
    recall = recall_at(model, val_users, val_ads)
    print(f"held-out clicks: recall@20 {recall:.4f}")
    return model, recall


if __name__ == "__main__":
    model, recall = main()
