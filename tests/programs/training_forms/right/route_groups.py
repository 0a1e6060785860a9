import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(43)
TRIES, STOPS = 6, 8


class Chooser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, stops, demand):
        place = stops.unflatten(1, (STOPS, 2))
        rest = torch.stack([demand, place.norm(dim=-1)], -1)
        return self.score(torch.cat([place, rest], -1)).squeeze(-1)


def payoff(stops, demand, choice):
    cost = stops.unflatten(1, (STOPS, 2)).norm(dim=-1)
    worth = demand - cost
    return worth.gather(1, choice[:, None]).squeeze(1) + 4 * demand.mean(1)


class Learner:
    def __init__(self, chooser):
        self.chooser = chooser
        self.opt = torch.optim.Adam(chooser.parameters(), lr=3e-3)

    @staticmethod
    def fan_out(rows):
        return rows[:, None].expand(-1, TRIES, -1).flatten(0, 1)

    @staticmethod
    def centre(reward, depots):
        groups = reward.unflatten(0, (depots, TRIES))
        groups = groups - groups.mean(1, keepdim=True)
        return (groups / (groups.std() + 1e-6)).flatten()

    def improve(self, stops, demand):
        many_stops, many_demand = self.fan_out(stops), self.fan_out(demand)
        law = Categorical(logits=self.chooser(many_stops, many_demand))
        choice = law.sample()
        reward = payoff(many_stops, many_demand, choice)
        gain = self.centre(reward, depots=len(stops))
        loss = -(gain * law.log_prob(choice)).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), reward.mean().item()


learner = Learner(Chooser())
history = []
for step in range(150):
    size = torch.rand(16, 1) * 3
    history.append(learner.improve(torch.randn(16, STOPS * 2), torch.rand(16, STOPS) * size))
    if step % 50 == 49:
        losses, rewards = zip(*history[-50:])
        print(f"step {step} loss {sum(losses) / 50:.4f} reward {sum(rewards) / 50:.4f}")
