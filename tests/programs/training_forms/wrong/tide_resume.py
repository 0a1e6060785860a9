import io

import torch
from torch import nn

torch.manual_seed(9)


def tides(n, span=12):
    start = torch.rand(n, 1) * 40
    t = start + torch.arange(span + 1)
    level = torch.sin(0.5 * t) + 0.5 * torch.sin(0.93 * t) + 0.05 * torch.randn(n, span + 1)
    return level[:, :span], level[:, span]


class Job:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ELU(), nn.Linear(32, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, self.shape)

    @staticmethod
    def shape(step):
        return (step + 1) / 10 if step < 10 else 0.97 ** (step - 10)

    def save(self):
        shelf = io.BytesIO()
        torch.save(
            {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict()},
            shelf,
        )
        return shelf.getvalue()

    @classmethod
    def restore(cls, blob):
        job = cls()
        held = torch.load(io.BytesIO(blob))
        for part in ("net", "opt"):
            getattr(job, part).load_state_dict(held[part])
        return job

    def run(self, x, y, steps):
        gen = torch.Generator().manual_seed(steps)
        for _ in range(steps):
            rows = torch.randint(len(x), (32,), generator=gen)
            loss = torch.mean((self.net(x[rows]).squeeze(1) - y[rows]) ** 2)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
        return loss.item(), self.sched.get_last_lr()[0]


x, y = tides(600)
first = Job()
loss, rate = first.run(x[:500], y[:500], 60)
print(f"first shift: loss {loss:.5f}, rate {rate:.4f}")
blob = first.save()
del first

second = Job.restore(blob)
for leg in range(3):
    loss, rate = second.run(x[:500], y[:500], 30)
    print(f"second shift, leg {leg}: loss {loss:.5f}, rate {rate:.4f}")
with torch.no_grad():
    print(f"test {torch.mean((second.net(x[500:]).squeeze(1) - y[500:]) ** 2):.5f}")
