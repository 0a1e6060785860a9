"""Exploration bonus in a grid maze (random network distillation): a predictor learns the output of a fixed random
network on the visited cells; its error is a novelty bonus for actor-critic learning without any other reward."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(53)

MAZE = [
    "S...#.....",
    "###.#.###.",
    "....#.#...",
    ".####.#.##",
    ".#....#...",
    ".#.####.#.",
    "...#....#.",
]
ROWS, COLS = len(MAZE), len(MAZE[0])
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]
OPEN = sum(c != "#" for row in MAZE for c in row)


def one_hot(cells):
    index = torch.tensor([r * COLS + c for r, c in cells])
    return F.one_hot(index, ROWS * COLS).float()


def step(cell, action):
    r, c = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    return (r, c) if 0 <= r < ROWS and 0 <= c < COLS and MAZE[r][c] != "#" else cell


def mlp(out, width=64):
    return nn.Sequential(nn.Linear(ROWS * COLS, width), nn.ReLU(), nn.Linear(width, out))


class Curiosity(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.target = mlp(dim).requires_grad_(False)
        for layer in self.target:
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, gain=2.0)
        self.predictor = mlp(dim)
        self.register_buffer("scale", torch.ones(()))

    def novelty(self, obs):
        return (self.predictor(obs) - self.target(obs)).pow(2).mean(dim=1)

    @torch.no_grad()
    def bonus(self, obs):
        raw = self.novelty(obs)
        self.scale.mul_(0.99).add_(raw.std() + 1e-6, alpha=0.01)
        return raw / self.scale


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = mlp(len(MOVES))
        self.critic = mlp(1)


def explore(use_bonus, episodes=400, horizon=80, gamma=0.98):
    torch.manual_seed(1)
    agent, curiosity = Agent(), Curiosity()
    opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
    opt_pred = torch.optim.Adam(curiosity.predictor.parameters(), lr=1e-3)
    visited = {(0, 0)}
    for _ in range(episodes):
        cell, cells, actions = (0, 0), [(0, 0)], []
        with torch.no_grad():
            policy = agent.actor(torch.eye(ROWS * COLS)).softmax(dim=1)
            noise = torch.rand(horizon).tolist()
            cumulative = policy.cumsum(dim=1).tolist()
        for u in noise:
            row = cumulative[cell[0] * COLS + cell[1]]
            action = min(sum(u > c for c in row), len(MOVES) - 1)
            cell = step(cell, action)
            cells.append(cell)
            actions.append(action)
        visited.update(cells)
        obs = one_hot(cells)
        reward = curiosity.bonus(obs[1:]) if use_bonus else torch.zeros(horizon)

        values = agent.critic(obs).squeeze(1)
        returns, running = [], values[-1].detach()
        for r in reward.flip(0):
            running = r + gamma * running
            returns.append(running)
        returns = torch.stack(returns).flip(0)
        advantage = returns - values[:-1].detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        dist = torch.distributions.Categorical(logits=agent.actor(obs[:-1]))
        policy_loss = -(dist.log_prob(torch.tensor(actions)) * advantage).mean()
        value_loss = F.smooth_l1_loss(values[:-1], returns)
        opt.zero_grad()
        (policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()).backward()
        opt.step()

        opt_pred.zero_grad()
        curiosity.novelty(obs).mean().backward()
        opt_pred.step()
    return len(visited), curiosity


if __name__ == "__main__":
    for use_bonus in (False, True):
        found, curiosity = explore(use_bonus)
        print(f"bonus {use_bonus!s:5s}  visited {found} of {OPEN} cells  scale {curiosity.scale:.4f}")
