"""Model-based control: an actor and a critic are trained inside a small ensemble of learned dynamics."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
GAMMA, LAM, HORIZON, EPISODE = 0.95, 0.9, 8, 25


class Glider:
    """A damped pendulum-like glider; the reward asks for height with little effort."""

    def reset(self, count=16):
        self.state = torch.stack([torch.rand(count) * 2 - 1, torch.rand(count) - 0.5], dim=1)
        return self.state.clone()

    def step(self, action):
        angle, speed = self.state.unbind(1)
        speed = 0.95 * speed + 0.15 * torch.sin(angle) + 0.3 * action.squeeze(1).clamp(-1, 1)
        self.state = torch.stack([(angle + 0.2 * speed).clamp(-3, 3), speed], dim=1)
        return self.state.clone()


def reward(state, action):
    return torch.cos(state[..., 0]) - 0.05 * state[..., 1].pow(2) - 0.02 * action.pow(2).squeeze(-1)


def mlp(inputs, outputs, hidden=48):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, outputs))


class Dynamics(nn.Module):
    def __init__(self, members=3):
        super().__init__()
        self.members = nn.ModuleList(mlp(3, 2) for _ in range(members))
        self.register_buffer("scale", torch.ones(2))

    def forward(self, state, action, k):
        return state + self.scale * self.members[k](torch.cat([state, action], dim=-1))

    def fit(self, optimizer, s, a, n, steps=60):
        self.scale.copy_((n - s).std(dim=0))
        for _ in range(steps):
            loss = 0.0
            for k in range(len(self.members)):  # every member draws its own batch
                i = torch.randint(0, len(s), (64,))
                loss = loss + ((self(s[i], a[i], k) - n[i]) / self.scale).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item() / len(self.members)


dynamics, actor, critic, slow_critic = Dynamics(), nn.Sequential(mlp(2, 1), nn.Tanh()), mlp(2, 1), mlp(2, 1)
slow_critic.load_state_dict(critic.state_dict())
slow_critic.requires_grad_(False)
model_opt = torch.optim.Adam(dynamics.parameters(), lr=2e-3)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)


def imagine(start):
    """Rolls the actor through the model; the return is differentiable in every action."""
    k = int(torch.randint(0, len(dynamics.members), (1,)))
    states, rewards, s = [start], [], start
    for _ in range(HORIZON):
        a = actor(s)
        s = dynamics(s, a, k)
        states.append(s)
        rewards.append(reward(s, a))
    values = slow_critic(torch.stack(states)).squeeze(-1)
    ret, returns = values[-1], []
    for t in reversed(range(HORIZON)):
        ret = rewards[t] + GAMMA * ((1 - LAM) * values[t + 1] + LAM * ret)
        returns.append(ret)
    return torch.stack(states[:-1]), torch.stack(returns[::-1])


def improve(pool, steps=40):
    dynamics.requires_grad_(False)  # gradients pass through the model, none are wanted for it
    for _ in range(steps):
        states, returns = imagine(pool[torch.randint(0, len(pool), (64,))])
        actor_opt.zero_grad()
        (-returns.mean()).backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        actor_opt.step()
        critic_loss = F.mse_loss(critic(states.detach()).squeeze(-1), returns.detach())
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        for slow, fast in zip(slow_critic.parameters(), critic.parameters()):
            slow.lerp_(fast.detach(), 0.02)
    dynamics.requires_grad_(True)
    return critic_loss.item()


env, memory = Glider(), []
for it in range(8):
    s, total = env.reset(), 0.0
    with torch.no_grad():
        for _ in range(EPISODE):
            a = (actor(s) + 0.3 * torch.randn(len(s), 1)).clamp(-1, 1) if it else torch.rand(len(s), 1) * 2 - 1
            n = env.step(a)
            memory.append((s, a, n))
            total, s = total + reward(n, a).mean().item() / EPISODE, n
    data = [torch.cat(x) for x in zip(*memory)]
    model_loss, critic_loss = dynamics.fit(model_opt, *data), improve(data[0])
    print(f"iteration {it}: reward {total:.3f}  model {model_loss:.4f}  critic {critic_loss:.3f}")
