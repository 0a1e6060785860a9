"""PPO with a clipped surrogate on docking: a craft in the plane has to come to rest at the origin.

64 craft fly in parallel; the observation is position and velocity, the action a thrust vector.
"""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(5)
torch.set_num_threads(1)

CRAFT, HORIZON = 64, 32
GAMMA, LAMBDA = 0.97, 0.95
CLIP, EPOCHS, MINIBATCH = 0.2, 10, 512


def launch(n):
    return torch.cat([torch.rand(n, 2) * 4 - 2, 0.5 * torch.randn(n, 2)], dim=1)


def fly(state, thrust):
    push = thrust.clamp(-2, 2)
    velocity = state[:, 2:] + 0.2 * push
    position = state[:, :2] + 0.2 * velocity
    reward = -(position.pow(2).sum(1) + 0.1 * velocity.pow(2).sum(1) + 0.02 * push.pow(2).sum(1))
    return torch.cat([position, velocity], dim=1), 0.1 * reward.clamp(min=-20)


class Pilot(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
        self.log_std = nn.Parameter(torch.full((2,), -0.3))
        self.value = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def policy(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())

    def critic(self, obs):
        return self.value(obs).squeeze(-1)


@torch.no_grad()
def rollout(pilot):
    state = launch(CRAFT)
    observations, actions, rewards, values = [], [], [], []
    for _ in range(HORIZON):
        action = pilot.policy(state).sample()
        observations.append(state)
        actions.append(action)
        values.append(pilot.critic(state))
        state, reward = fly(state, action)
        rewards.append(reward)
    values.append(pilot.critic(state))

    advantages, running = [], torch.zeros(CRAFT)
    for t in reversed(range(HORIZON)):
        delta = rewards[t] + GAMMA * values[t + 1] - values[t]
        running = delta + GAMMA * LAMBDA * running
        advantages.insert(0, running)
    advantages = torch.stack(advantages)
    returns = advantages + torch.stack(values[:-1])
    flat = [torch.stack(observations), torch.stack(actions), advantages, returns]
    return [x.flatten(0, 1) for x in flat], torch.stack(rewards).sum(0).mean().item()


def update(pilot, optimizer, batch):
    obs, act, adv, ret = batch
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(obs)).split(MINIBATCH):
            with torch.no_grad():
                old_log_prob = pilot.policy(obs[idx]).log_prob(act[idx]).sum(-1)
            dist = pilot.policy(obs[idx])
            ratio = (dist.log_prob(act[idx]).sum(-1) - old_log_prob).exp()
            surrogate = torch.min(ratio * adv[idx], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[idx])
            value_loss = (pilot.critic(obs[idx]) - ret[idx]).pow(2).mean()
            loss = -surrogate.mean() + 0.5 * value_loss - 1e-3 * dist.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(pilot.parameters(), 0.5)
            optimizer.step()


def main():
    pilot = Pilot()
    optimizer = torch.optim.Adam(pilot.parameters(), lr=3e-3)
    scores = []
    for iteration in range(1, 25):
        batch, score = rollout(pilot)
        update(pilot, optimizer, batch)
        scores.append(score)
        if iteration % 8 == 0:
            print(f"iteration {iteration:3d}  return {sum(scores[-5:]) / 5:8.3f}  std {pilot.log_std.exp().mean().item():.3f}")
    return scores


if __name__ == "__main__":
    scores = main()
