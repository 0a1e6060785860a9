"""Exploration by random network distillation (Burda et al., 2018) with an actor-critic in a key-and-door corridor."""
import torch
import torch.nn as nn

SEED, LENGTH, N_ENVS, HORIZON, ITERS, GAMMA = 1, 9, 32, 30, 100, 0.95
torch.manual_seed(SEED)


class Corridor:
    """Start in the middle, fetch the key at the left end, then open the door at the right end; reward only there."""

    def reset(self):
        self.x = torch.full((N_ENVS,), LENGTH // 2)
        self.key = torch.zeros(N_ENVS, dtype=torch.long)
        return self.observe()

    def observe(self):
        return torch.cat([torch.eye(LENGTH)[self.x] * (1 - self.key[:, None]), torch.eye(LENGTH)[self.x] * self.key[:, None]], 1)

    def step(self, a):
        self.x = (self.x + 2 * a - 1).clamp(0, LENGTH - 1)
        self.key = self.key | (self.x == 0).long()
        opened = (self.key == 1) & (self.x == LENGTH - 1)
        self.x = torch.where(opened, LENGTH // 2, self.x)
        self.key = torch.where(opened, 0, self.key)
        return self.observe(), opened.float()


def mlp(n_in, n_out, hidden=64):
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class Novelty(nn.Module):
    def __init__(self, n_obs, n_feat=16):
        super().__init__()
        self.target = mlp(n_obs, n_feat)
        self.predictor = mlp(n_obs, n_feat)
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.register_buffer("scale", torch.tensor(1.0))

    def error(self, obs):
        return (self.predictor(obs) - self.target(obs)).pow(2).mean(-1)

    @torch.no_grad()
    def bonus(self, obs):
        e = self.error(obs)
        self.scale.mul_(0.95).add_(0.05 * e.std())
        return e / (self.scale + 1e-6)


class ActorCritic(nn.Module):
    """One trunk; policy, extrinsic value and intrinsic value are three heads of it."""

    def __init__(self, n_obs):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_obs, 64), nn.Tanh())
        self.pi, self.v_ext, self.v_int = nn.Linear(64, 2), nn.Linear(64, 1), nn.Linear(64, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return torch.distributions.Categorical(logits=self.pi(h)), self.v_ext(h).squeeze(-1), self.v_int(h).squeeze(-1)


def returns(rewards, last):
    out = torch.zeros_like(rewards)
    for t in reversed(range(len(rewards))):
        last = rewards[t] + GAMMA * last
        out[t] = last
    return out


env, agent, novelty = Corridor(), ActorCritic(2 * LENGTH), Novelty(2 * LENGTH)
agent_opt = torch.optim.Adam(agent.parameters(), lr=5e-3)
pred_opt = torch.optim.Adam((p for p in novelty.parameters() if p.requires_grad), lr=1e-3)

obs = env.reset()
for it in range(ITERS):
    seen, acts, r_ext, r_int = [], [], [], []
    for _ in range(HORIZON):
        with torch.no_grad():
            action = agent(obs)[0].sample()
        seen.append(obs)
        acts.append(action)
        obs, reward = env.step(action)
        r_ext.append(reward)
        r_int.append(novelty.bonus(obs))
    seen, acts, r_ext, r_int = (torch.stack(x) for x in (seen, acts, r_ext, r_int))
    dist, v_ext, v_int = agent(seen)
    with torch.no_grad():
        _, last_ext, last_int = agent(obs)
        ret_ext, ret_int = returns(r_ext, last_ext), returns(r_int, last_int)
        adv = 4.0 * (ret_ext - v_ext) + 0.3 * (ret_int - v_int)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    value_loss = (v_ext - ret_ext).pow(2).mean() + 0.1 * (v_int - ret_int).pow(2).mean()
    loss = -(dist.log_prob(acts) * adv).mean() + 0.5 * value_loss - 0.01 * dist.entropy().mean()
    agent_opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
    agent_opt.step()

    pred_loss = novelty.error(torch.cat([seen[1:].flatten(0, 1), obs])).mean()
    pred_opt.zero_grad()
    pred_loss.backward()
    pred_opt.step()
    if it % 30 == 0 or it == ITERS - 1:
        print(f"iter {it}  doors opened {int(r_ext.sum())}  prediction error {pred_loss.item():.5f}")
