import io

import torch
from torch import nn

STEPS = 160


class Forecaster(nn.Module):
    def __init__(self, lags=16):
        super().__init__()
        self.gate = nn.Linear(lags, 24)
        self.value = nn.Linear(lags, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, past):
        return self.out(torch.sigmoid(self.gate(past)) * self.value(past)).squeeze(-1)


class Session:
    def __init__(self):
        self.model = Forecaster()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(
            self.opt, max_lr=0.1, total_steps=STEPS, cycle_momentum=False)
        self.step = 0

    def save(self):
        buf = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(),
                    "sched": self.sched.state_dict(), "step": self.step}, buf)
        return buf.getvalue()

    @classmethod
    def resume(cls, raw):
        state = torch.load(io.BytesIO(raw))
        new = cls()
        new.model.load_state_dict(state["model"])
        new.opt.load_state_dict(state["opt"])
        new.step = state["step"]
        return new

    def run(self, series, until):
        windows = series.unfold(0, 17, 1)
        while self.step < until:
            w = windows[torch.randint(0, len(windows), (32,))]
            loss = nn.functional.mse_loss(self.model(w[:, :16]), w[:, 16])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
            self.step += 1
            if self.step % 20 == 0:
                print(f"step {self.step} lr {self.opt.param_groups[0]['lr']:.5f} loss {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(18)
    t = torch.arange(900.0)
    series = torch.sin(t / 4) + 0.5 * torch.sin(t / 1.7) + 0.1 * torch.randn(900)
    first = Session()
    first.run(series, 80)
    raw = first.save()
    second = Session.resume(raw)
    second.run(series, STEPS)
