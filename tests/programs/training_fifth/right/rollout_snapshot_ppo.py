"""PPO for a continuous reaching task; the log-probabilities of the rollout are stored, no second network is kept."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.set_num_threads(1)
torch.manual_seed(0)

AGENTS, HORIZON, CLIP, GAMMA = 32, 12, 0.2, 0.9


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 2))
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


actor = Actor()
critic = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))
behaviour = actor  # the rollout is drawn by the same object; what it said is kept as numbers
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)


@torch.no_grad()
def rollout():
    place, goal = torch.rand(2, AGENTS, 2) * 2 - 1
    memory = {"obs": [], "action": [], "log_prob": [], "reward": []}
    for _ in range(HORIZON):
        obs = torch.cat([place, goal], -1)
        pi = behaviour(obs)
        action = pi.sample()
        place = place + 0.2 * action.clamp(-1, 1)
        memory["obs"].append(obs)
        memory["action"].append(action)
        memory["log_prob"].append(pi.log_prob(action).sum(-1))
        memory["reward"].append(-(place - goal).norm(dim=-1))
    final = critic(torch.cat([place, goal], -1)).squeeze(-1)
    returns = []
    for reward in reversed(memory["reward"]):
        final = reward + GAMMA * final
        returns.insert(0, final)
    batch = {k: torch.cat(v) for k, v in memory.items()}
    batch["return"] = torch.cat(returns)
    return batch


for iteration in range(40):
    batch = rollout()
    with torch.no_grad():
        advantage = batch["return"] - critic(batch["obs"]).squeeze(-1)
        advantage = (advantage - advantage.mean()) / advantage.std()
    clipped_share = []
    for epoch in range(5):
        for index in torch.randperm(len(advantage)).split(128):
            pi = actor(batch["obs"][index])
            ratio = (pi.log_prob(batch["action"][index]).sum(-1) - batch["log_prob"][index]).exp()
            limited = ratio.clamp(1 - CLIP, 1 + CLIP)
            policy_loss = -torch.minimum(ratio * advantage[index], limited * advantage[index]).mean()
            value_loss = F.mse_loss(critic(batch["obs"][index]).squeeze(-1), batch["return"][index])
            actor_optimizer.zero_grad()
            policy_loss.backward()
            actor_optimizer.step()
            critic_optimizer.zero_grad()
            value_loss.backward()
            critic_optimizer.step()
            clipped_share.append((ratio != limited).float().mean())
    if iteration % 8 == 7:
        print(f"iteration {iteration:2d}  mean reward {batch['reward'].mean():.3f}"
              f"  clipped {torch.stack(clipped_share).mean():.3f}  value loss {value_loss.item():.3f}")
