import torch
from torch import nn


class Replay:
    def __init__(self, capacity, fields):
        self.capacity = capacity
        self.store = {name: torch.empty(0, *shape) for name, shape in fields.items()}

    def extend(self, fresh):
        self.store = {
            name: torch.cat((held, fresh[name]))[-self.capacity:]
            for name, held in self.store.items()
        }

    def sample(self, n, gen):
        size = len(self.store["reward"])
        rows = torch.randint(size, (n,), generator=gen)
        return {name: held[rows] for name, held in self.store.items()}


class DriftingBandit:
    def __init__(self, context, arms, gen):
        self.theta = torch.randn(arms, context, generator=gen) / context ** 0.5
        self.gen = gen

    def contexts(self, n):
        return torch.randn(n, self.theta.size(1), generator=self.gen)

    def pull(self, ctx, arm):
        self.theta += 0.03 * torch.randn(self.theta.shape, generator=self.gen)
        mean = (ctx * self.theta[arm]).sum(1)
        return mean + 0.1 * torch.randn(len(ctx), generator=self.gen)


def act(net, ctx, eps, gen):
    with torch.no_grad():
        greedy = net(ctx).argmax(1)
    explore = torch.rand(len(ctx), generator=gen) < eps
    return torch.where(explore, torch.randint(6, (len(ctx),), generator=gen), greedy)


def run(rounds=120, per_round=32):
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(2)
    env = DriftingBandit(8, 6, gen)
    net = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 6))
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    replay = Replay(512, {"ctx": (8,), "arm": (), "reward": ()})
    recent = []
    for r in range(rounds):
        ctx = env.contexts(per_round)
        arm = act(net, ctx, 0.15, gen)
        reward = env.pull(ctx, arm)
        replay.extend({"ctx": ctx, "arm": arm.float(), "reward": reward})
        for _ in range(2):
            batch = replay.sample(64, gen)
            chosen = net(batch["ctx"]).gather(1, batch["arm"].long()[:, None]).squeeze(1)
            loss = (chosen - batch["reward"]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        recent.append(reward.mean().item())
        if r % 20 == 19:
            print(f"round {r + 1:3d}  td {loss.item():.4f}  reward {sum(recent[-20:]) / 20:.3f}")


run()
