import torch
from torch import nn

torch.manual_seed(4)


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(10, 32), nn.ELU(), nn.Linear(32, 8))
        self.advance = nn.Linear(8 + 2, 8)
        self.reward = nn.Linear(8, 1)

    def losses(self, obs, act, nxt, rew):
        z = self.encode(obs)
        guess = self.advance(torch.cat([z, act], dim=-1))
        return (guess - self.encode(nxt).detach()).square().mean() + (self.reward(guess) - rew).square().mean()


world = World()
policy = nn.Sequential(nn.Linear(8, 24), nn.ELU(), nn.Linear(24, 2), nn.Tanh())
tools = {
    "world": torch.optim.Adam(world.parameters(), lr=3e-3),
    "policy": torch.optim.Adam(policy.parameters(), lr=1e-3),
}
dyn = torch.randn(10, 10) * 0.3
push = torch.randn(2, 10)


def sample(n):
    obs = torch.randn(n, 10)
    act = torch.rand(n, 2) * 2 - 1
    nxt = obs @ dyn + act @ push
    return obs, act, nxt, -nxt.abs().mean(dim=1, keepdim=True)


def train_world(batch):
    tools["world"].zero_grad()
    loss = world.losses(*batch)
    loss = loss + 0.2 * world.encode(batch[0]).abs().mean()
    loss.backward()
    tools["world"].step()
    return loss


def train_policy(batch):
    tools["policy"].zero_grad()
    code = world.encode(batch[0])
    start = code.detach()
    after = world.advance(torch.cat([start, policy(start)], dim=-1))
    gain = world.reward(after).mean()
    loss = -gain
    loss.backward()
    tools["policy"].step()
    return loss


for it in range(150):
    batch = sample(48)
    a, b = train_world(batch), train_policy(batch)
    if it % 50 == 49:
        print(f"{it + 1}: world {a.item():.4f} policy {b.item():.4f}")
with torch.no_grad():
    print("code size", world.encode(sample(256)[0]).abs().mean().item())
