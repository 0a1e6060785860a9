"""PPO (Schulman et al., 2017), clipped objective with GAE, on several small cart-poles stepped together."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(1)
np.random.seed(1)

N_ENVS, HORIZON, ITERATIONS, EPOCHS, MINIBATCH = 16, 64, 25, 4, 256
GAMMA, LAMBDA, CLIP, ENT, VF = 0.98, 0.95, 0.2, 0.01, 0.5


class VecCartPole:
    """Cart-pole with N copies, in plain numpy; an episode ends when the pole falls or after 200 steps."""

    def __init__(self, n):
        self.state = np.zeros((n, 4), dtype=np.float32)
        self.age = np.zeros(n, dtype=np.int64)

    def _restart(self, rows):
        self.state[rows] = np.random.uniform(-0.05, 0.05, size=(int(rows.sum()), 4))
        self.age[rows] = 0

    def reset(self):
        self._restart(np.ones(len(self.state), dtype=bool))
        return self.state

    def step(self, action):
        s, force = self.state, np.where(action == 1, 10.0, -10.0)
        sin, cos = np.sin(s[:, 2]), np.cos(s[:, 2])
        temp = (force + 0.05 * s[:, 3] ** 2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        s += 0.02 * np.stack([s[:, 1], x_acc, s[:, 3], theta_acc], axis=1).astype(np.float32)
        self.age += 1
        done = (np.abs(s[:, 0]) > 2.4) | (np.abs(s[:, 2]) > 0.2095) | (self.age >= 200)
        lengths = self.age[done].copy()
        self._restart(done)
        return self.state, np.ones(len(s), dtype=np.float32), done, lengths


def mlp(out, gain):
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, out)]
    nn.init.orthogonal_(layers[-1].weight, gain)
    nn.init.zeros_(layers[-1].bias)
    return nn.Sequential(*layers)


actor, critic = mlp(2, 0.01), mlp(1, 1.0)
params = list(actor.parameters()) + list(critic.parameters())
optimizer = torch.optim.Adam(params, lr=2e-3, eps=1e-5)
envs = VecCartPole(N_ENVS)
obs = torch.from_numpy(envs.reset())
recent = []

for iteration in range(ITERATIONS):
    roll = {key: [] for key in ("obs", "action", "logp", "value", "reward", "done")}
    for _ in range(HORIZON):
        with torch.no_grad():
            dist = Categorical(logits=actor(obs))
            action = dist.sample()
            roll["value"].append(critic(obs).squeeze(1))
            roll["logp"].append(dist.log_prob(action))
        next_obs, reward, done, lengths = envs.step(action.numpy())
        roll["obs"].append(obs)
        roll["action"].append(action)
        roll["reward"].append(torch.from_numpy(reward))
        roll["done"].append(torch.from_numpy(done).float())
        obs = torch.from_numpy(next_obs)
        recent = (recent + lengths.tolist())[-40:]
    b = {key: torch.stack(items) for key, items in roll.items()}

    with torch.no_grad():
        next_value = critic(obs).squeeze(1)
    advantage, running = torch.zeros_like(b["reward"]), torch.zeros(N_ENVS)
    for t in reversed(range(HORIZON)):
        alive = 1 - b["done"][t]
        delta = b["reward"][t] + GAMMA * alive * next_value - b["value"][t]
        running = delta + GAMMA * LAMBDA * alive * running
        advantage[t], next_value = running, b["value"][t]
    b["ret"], b["adv"] = advantage + b["value"], advantage
    b = {key: item.flatten(0, 1) for key, item in b.items()}

    for _ in range(EPOCHS):
        for rows in torch.randperm(N_ENVS * HORIZON).split(MINIBATCH):
            mb = {key: item[rows] for key, item in b.items()}
            dist = Categorical(logits=actor(mb["obs"]))
            ratio = (dist.log_prob(mb["action"]) - mb["logp"]).exp()
            adv = (mb["adv"] - mb["adv"].mean()) / (mb["adv"].std() + 1e-8)
            surrogate = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
            value_loss = (critic(mb["obs"]).squeeze(1) - mb["ret"]).pow(2).mean()
            loss = -surrogate + VF * value_loss - ENT * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
    if iteration % 6 == 0 or iteration == ITERATIONS - 1:
        print(f"iteration {iteration:2d}  episode length {np.mean(recent):6.1f}  value loss {value_loss.item():.3f}")
