"""A small world-model agent: learn the dynamics of a sliding puck, then train the policy in imagined rollouts."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(8)

IMAGINE, GAMMA, ETA, ENV_STEPS = 10, 0.95, 1e-2, 25


def env_step(s, a):
    """Puck on ice with a side wind; the goal is the origin. State: x, y, vx, vy."""
    a = a.clamp(-1, 1)
    v = 0.9 * s[:, 2:] + 0.2 * a + torch.tensor([0.03, -0.02])
    p = (s[:, :2] + 0.3 * v).clamp(-3, 3)
    reward = 1 - p.norm(dim=1) - 0.05 * a.pow(2).sum(dim=1)
    return torch.cat([p, v], dim=1), reward


def env_reset(n):
    return torch.cat([torch.rand(n, 2) * 4 - 2, torch.randn(n, 2) * 0.2], dim=1)


class WorldModel(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.delta = nn.Linear(hidden, 4)
        self.reward = nn.Linear(hidden, 1)

    def forward(self, s, a):
        h = self.trunk(torch.cat([s, a], dim=1))
        return s + self.delta(h), self.reward(h).squeeze(1)

    @torch.no_grad()
    def predict(self, s, a):
        """One step ahead with the learned model, for rollouts."""
        self.eval()
        return self(s, a)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 4))

    def forward(self, s):
        mean, raw = self.net(s).chunk(2, dim=1)
        return Normal(torch.tanh(mean), 0.1 + 0.4 * torch.sigmoid(raw))


def imagine(model, actor, s):
    rewards, entropies, states = [], [], []
    for _ in range(IMAGINE):
        dist = actor(s)
        a = dist.rsample()
        s, r = model.predict(s, a)
        rewards.append(r)
        entropies.append(dist.entropy().sum(dim=1))
        states.append(s)
    return torch.stack(rewards), torch.stack(entropies), torch.stack(states)


@torch.no_grad()
def evaluate(actor, n=200):
    s, total = env_reset(n), torch.zeros(n)
    for _ in range(ENV_STEPS):
        s, r = env_step(s, actor(s).mean)
        total += r
    return total.mean().item()


model, actor = WorldModel(), Actor()
opt_model = torch.optim.Adam(model.parameters(), lr=3e-3)
opt_actor = torch.optim.Adam(actor.parameters(), lr=2e-3)
discount = GAMMA ** torch.arange(IMAGINE).unsqueeze(1)
memory = []

for cycle in range(4):
    s = env_reset(64)
    for _ in range(ENV_STEPS):
        with torch.no_grad():
            a = actor(s).sample() if cycle else torch.rand(64, 2) * 2 - 1
        s2, r = env_step(s, a)
        memory.append((s, a, s2, r))
        s = s2
    data = [torch.cat(parts) for parts in zip(*memory)]

    model.train()
    for _ in range(120):
        rows = torch.randint(len(data[0]), (192,))
        bs, ba, bs2, br = (d[rows] for d in data)
        ps, pr = model(bs, ba)
        model_loss = F.mse_loss(ps, bs2) + F.mse_loss(pr, br)
        opt_model.zero_grad()
        model_loss.backward()
        opt_model.step()

    for _ in range(50):
        start = data[0][torch.randint(len(data[0]), (128,))]
        rewards, entropies, states = imagine(model, actor, start)
        actor_loss = -(discount * rewards).sum(0).mean() - ETA * entropies.mean()
        opt_actor.zero_grad()
        actor_loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 10.0)
        opt_actor.step()
    print(f"cycle {cycle}  model loss {model_loss.item():.5f}  imagined reward {rewards.mean().item():+.3f}  "
          f"return {evaluate(actor):+.2f}")
