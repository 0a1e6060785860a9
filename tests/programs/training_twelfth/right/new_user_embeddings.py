"""Weekly refresh of user embeddings: users who signed up this week get vectors, everything in production stays put."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    n_old: int = 500
    n_new: int = 150
    n_items: int = 200
    dim: int = 12
    clicks_per_user: int = 30
    fit_steps: int = 500
    refresh_steps: int = 250
    batch_size: int = 512
    lr: float = 0.03
    refresh_lr: float = 8.0
    seed: int = 29


class ClickModel(nn.Module):
    def __init__(self, n_users, cfg):
        super().__init__()
        self.users = nn.Embedding(n_users, cfg.dim)
        self.items = nn.Embedding(cfg.n_items, cfg.dim)
        self.popularity = nn.Parameter(torch.zeros(cfg.n_items))
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)

    def forward(self, user):
        return self.users(user) @ self.items.weight.T + self.popularity


class Clicks:
    def __init__(self, cfg):
        n = cfg.n_old + cfg.n_new
        logits = 1.3 * torch.randn(n, 4) @ torch.randn(4, cfg.n_items) + 0.7 * torch.randn(cfg.n_items)
        item = torch.multinomial(logits.softmax(1), cfg.clicks_per_user, replacement=True)
        self.train, self.test = item[:, :-6], item[:, -6:]

    def sample(self, users, n):
        user = users[torch.randint(len(users), (n,))]
        return user, self.train[user, torch.randint(self.train.shape[1], (n,))]


@torch.no_grad()
def perplexity(model, clicks, users):
    logp = model(users).log_softmax(1)
    return (-logp.gather(1, clicks.test[users]).mean()).exp().item()


def fit_production(cfg, clicks):
    model = ClickModel(cfg.n_old, cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.02)
    for _ in range(cfg.fit_steps):
        user, item = clicks.sample(torch.arange(cfg.n_old), cfg.batch_size)
        loss = F.cross_entropy(model(user), item)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model


def grow(model, cfg):
    """The table with rows for new users appended; they start at the mean of the known ones."""
    bigger = ClickModel(cfg.n_old + cfg.n_new, cfg)
    state = model.state_dict()
    table = state["users.weight"]
    state["users.weight"] = torch.cat([table, table.mean(0).expand(cfg.n_new, -1)])
    bigger.load_state_dict(state)
    return bigger


def refresh(model, cfg, clicks):
    everyone = torch.arange(cfg.n_old + cfg.n_new)
    trainable = (everyone >= cfg.n_old).float()[:, None]
    model.requires_grad_(False)
    model.users.weight.requires_grad_(True)
    handle = model.users.weight.register_hook(lambda grad: grad * trainable)
    opt = torch.optim.SGD([model.users.weight], lr=cfg.refresh_lr)
    for step in range(cfg.refresh_steps):
        # old users stay in the batches: the logged loss then stays comparable with that of the full training
        user, item = clicks.sample(everyone, cfg.batch_size)
        loss = F.cross_entropy(model(user), item)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            print(f"refresh step {step + 1:3d}  loss {loss.item():.3f}  new users {perplexity(model, clicks, everyone[cfg.n_old:]):.1f}")
    handle.remove()
    model.requires_grad_(True)


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(cfg.seed)
    clicks = Clicks(cfg)
    production = fit_production(cfg, clicks)
    model = grow(production, cfg)
    old, new = torch.arange(cfg.n_old), torch.arange(cfg.n_old, cfg.n_old + cfg.n_new)
    print(f"test perplexity before: old users {perplexity(model, clicks, old):.1f}, new users {perplexity(model, clicks, new):.1f}")
    refresh(model, cfg, clicks)
    print(f"test perplexity after:  old users {perplexity(model, clicks, old):.1f}, new users {perplexity(model, clicks, new):.1f}")
    drift = (model.users.weight[: cfg.n_old] - production.users.weight).abs().max().item()
    print(f"largest change of a production vector: {drift:.1e}")
