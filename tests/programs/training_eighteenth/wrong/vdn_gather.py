"""Value decomposition (VDN) for three agents that have to cover three landmarks on a ring; team reward only."""
import torch
import torch.nn as nn

SEED, N_AGENTS, RING, N_ACTIONS = 5, 3, 9, 3
GAMMA, UPDATES, N_ENVS, HORIZON, BATCH = 0.9, 500, 32, 8, 96
torch.manual_seed(SEED)


class RingCover:
    """Agents move left, stay or move right; each has its own landmark; the team is paid per agent that stands on it."""

    def __init__(self, n):
        self.n = n

    def reset(self):
        self.pos = torch.randint(RING, (self.n, N_AGENTS))
        self.mark = torch.randint(RING, (self.n, N_AGENTS))
        return self.observe()

    def observe(self):
        eye = torch.eye(RING)
        ident = torch.eye(N_AGENTS).expand(self.n, -1, -1)
        return torch.cat([eye[self.pos], eye[self.mark], ident], -1)

    def step(self, act):
        self.pos = (self.pos + act - 1) % RING
        return self.observe(), (self.pos == self.mark).float().mean(1)


class AgentNet(nn.Module):
    """One utility network for all agents; the agent's index is part of the observation."""

    def __init__(self, obs_dim=2 * RING + N_AGENTS, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, N_ACTIONS)
        )

    def forward(self, obs):
        batch = obs.shape[0]
        q = self.net(obs.reshape(batch * N_AGENTS, -1))
        return q.view(N_AGENTS, batch, N_ACTIONS)


def team_value(utilities):
    return utilities.sum(0)


@torch.no_grad()
def act(net, obs, eps):
    batch = obs.shape[0]
    greedy = net.net(obs).argmax(-1)
    explore = torch.rand(batch, N_AGENTS) < eps
    return torch.where(explore, torch.randint(N_ACTIONS, (batch, N_AGENTS)), greedy)


@torch.no_grad()
def evaluate(net):
    env = RingCover(256)
    obs, total = env.reset(), 0.0
    for _ in range(HORIZON):
        obs, reward = env.step(act(net, obs, 0.0))
        total += reward.mean().item()
    return total / HORIZON


env = RingCover(N_ENVS)
net, target = AgentNet(), AgentNet()
target.load_state_dict(net.state_dict())
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
memory = []
before = evaluate(net)
obs = env.reset()

for update in range(UPDATES):
    if update % HORIZON == 0:
        obs = env.reset()
    actions = act(net, obs, max(0.1, 1 - update / 200))
    nxt, reward = env.step(actions)
    memory.append((obs, actions, reward, nxt))
    obs = nxt

    picks = torch.randint(len(memory), (BATCH // N_ENVS,))
    b_obs, b_act, b_rew, b_nxt = (torch.cat(x) for x in zip(*(memory[i] for i in picks)))
    chosen = net(b_obs).gather(-1, b_act.t().unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        best_next = target(b_nxt).max(-1).values
        goal = b_rew + GAMMA * team_value(best_next)
    loss = (team_value(chosen) - goal).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    optimizer.step()
    if update % 25 == 0:
        target.load_state_dict(net.state_dict())
    if update % 100 == 0:
        print(f"update {update}  loss {loss.item():.4f}  coverage {evaluate(net):.3f}")

after = evaluate(net)
print(f"greedy coverage: before {before:.3f}  after {after:.3f}")
