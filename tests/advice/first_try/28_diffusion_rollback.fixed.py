import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class NoiseNet(nn.Module):
    def __init__(self, dim=3, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, dim)
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None]], dim=1))


class DiffusionTrainer:
    def __init__(self, model, lr=3e-3, decay=0.97):
        self.model = model
        self.ema = copy.deepcopy(model)
        for p in self.ema.parameters():
            p.requires_grad_(False)
        self.decay = decay
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=40, gamma=0.5)
        self.best = float("inf")

    def loss(self, x0):
        t = torch.rand(x0.shape[0])
        eps = torch.randn_like(x0)
        a = torch.cos(t * 1.5708)[:, None]
        s = torch.sin(t * 1.5708)[:, None]
        return F.mse_loss(self.model(a * x0 + s * eps, t), eps)

    @torch.no_grad()
    def update_ema(self):
        for e, p in zip(self.ema.parameters(), self.model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)

    def maybe_rollback(self, recent):
        if recent < 1.08 * self.best:
            self.best = min(self.best, recent)
            return False
        self.model.load_state_dict(self.ema.state_dict())
        return True

    def step(self, x0):
        self.opt.zero_grad()
        loss = self.loss(x0)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.sched.step()
        self.update_ema()
        return loss.item()


def data(n):
    t = torch.rand(n) * 9.42
    return torch.stack([t.cos() * t / 5, t.sin() * t / 5, t / 5 - 1], 1)


def main():
    torch.manual_seed(6)
    trainer = DiffusionTrainer(NoiseNet())
    window = []
    for it in range(160):
        window.append(trainer.step(data(96)))
        if len(window) == 10:
            recent = sum(window) / len(window)
            rolled = trainer.maybe_rollback(recent)
            print(f"iter {it} loss {recent:.4f}" + (" rollback" if rolled else ""))
            window.clear()


if __name__ == "__main__":
    main()
