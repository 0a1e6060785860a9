import torch
from torch import nn
from torch.distributions import Categorical


class Corridor:
    def __init__(self, lanes, length, generator):
        self.lanes, self.length, self.generator = lanes, length, generator

    def reset(self):
        self.time = 0
        self.place = torch.rand(self.lanes, generator=self.generator) * 2 - 1
        return self.observe()

    def observe(self):
        clock = torch.full_like(self.place, self.time / self.length)
        return torch.stack([self.place, clock], 1)

    def step(self, action):
        push = (action.float() - 1) * 0.25
        self.place = self.place + push + 0.05 * torch.randn(self.lanes, generator=self.generator)
        self.time += 1
        return self.observe(), -self.place.abs(), self.time >= self.length


def mlp(inputs, outputs, width=32):
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs))


def collect(env, actor):
    obs, done = env.reset(), False
    rollout = {"obs": [], "action": [], "log_prob": [], "reward": []}
    while not done:
        dist = Categorical(logits=actor(obs))
        action = dist.sample()
        rollout["obs"].append(obs)
        rollout["action"].append(action)
        rollout["log_prob"].append(dist.log_prob(action))
        obs, reward, done = env.step(action)
        rollout["reward"].append(reward)
    batch = {key: torch.stack(values) for key, values in rollout.items()}
    batch["return"] = batch["reward"].flip(0).cumsum(0).flip(0)
    return {key: value.flatten(0, 1) for key, value in batch.items()}


def update(actor, critic, optimizer, batch, clip=0.2, entropy_weight=0.01):
    value = critic(batch["obs"]).squeeze(-1)
    advantage = (batch["return"] - value).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    dist = Categorical(logits=actor(batch["obs"]))
    log_prob = dist.log_prob(batch["action"])
    ratio = torch.exp(log_prob - batch["log_prob"])
    surrogate = torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    policy_loss = -surrogate.mean()
    value_loss = (value - batch["return"]).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - entropy_weight * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return policy_loss, value_loss


def main():
    torch.manual_seed(0)
    env = Corridor(16, 12, torch.Generator().manual_seed(1))
    actor, critic = mlp(2, 3), mlp(2, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=5e-3)
    for iteration in range(20):
        batch = collect(env, actor)
        policy_loss, value_loss = update(actor, critic, optimizer, batch)
        if iteration % 5 == 4:
            print(f"iteration {iteration + 1} reward {batch['reward'].mean():.4f} value loss {value_loss.item():.4f}")


if __name__ == "__main__":
    main()
