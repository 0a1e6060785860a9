import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(21)
GAMMA, CRANES, HORIZON = 0.95, 16, 12


class Yard:
    def reset(self):
        self.pos = torch.randint(-3, 4, (CRANES, 1)).float()
        return self.pos

    def move(self, action):
        self.pos = (self.pos + (action.float() - 1)[:, None]).clamp(-5, 5)
        return self.pos, 1.0 - 0.4 * self.pos.abs().squeeze(1)


actor = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 3))
critic = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))


def collect(yard):
    obs, act, rew = [yard.reset()], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            choice = torch.multinomial(actor(obs[-1]).softmax(-1), 1).squeeze(1)
            nxt, reward = yard.move(choice)
            obs.append(nxt)
            act.append(choice)
            rew.append(reward)
    return torch.stack(obs), torch.stack(act), torch.stack(rew)


def terms(obs, act, rew):
    value = critic(obs).squeeze(-1)
    goal = (rew + GAMMA * value[1:]).detach()
    surprise = (rew + GAMMA * value[1:] - value[:-1]).detach()
    nll = F.cross_entropy(actor(obs[:-1]).flatten(0, 1), act.flatten(), reduction="none")
    yield "policy", (nll * surprise.flatten()).mean()
    yield "value", F.smooth_l1_loss(value[:-1], goal)


opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
yard = Yard()
for it in range(120):
    batch = collect(yard)
    parts = dict(terms(*batch))
    opt.zero_grad()
    torch.stack(list(parts.values())).sum().backward()
    opt.step()
    if it % 20 == 19:
        print(f"iter {it + 1}  reward {batch[2].mean():.3f}  value loss {parts['value'].item():.4f}")
