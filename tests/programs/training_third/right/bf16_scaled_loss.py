import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 5, padding=2)
        self.body = nn.ModuleList(nn.Conv1d(channels, channels, 5, padding=2) for _ in range(2))
        self.leave = nn.Conv1d(channels, 1, 5, padding=2)

    def forward(self, x):
        h = F.relu(self.enter(x))
        for conv in self.body:
            h = h + F.relu(conv(h))
        return x - self.leave(h)


class LossScaler:
    def __init__(self, scale=2.0 ** 10, growth_interval=20):
        self.scale, self.interval, self.good = scale, growth_interval, 0

    def backward(self, loss):
        (loss * self.scale).backward()

    def unscale(self, params):
        finite = True
        for p in params:
            if p.grad is not None:
                p.grad.div_(self.scale)
                finite = finite and bool(torch.isfinite(p.grad).all())
        return finite

    def update(self, finite):
        self.good = self.good + 1 if finite else 0
        if not finite:
            self.scale /= 2
        elif self.good % self.interval == 0:
            self.scale *= 2


class Trainer:
    def __init__(self, model):
        self.model = model
        self.params = list(model.parameters())
        self.optimizer = torch.optim.SGD(self.params, lr=0.05, momentum=0.9)
        self.scaler = LossScaler()
        self.skipped = 0

    def step(self, noisy, clean):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = self.model(noisy)
        loss = F.mse_loss(pred.float(), clean)
        self.scaler.backward(loss)
        finite = self.scaler.unscale(self.params)
        if finite:
            nn.utils.clip_grad_norm_(self.params, 1.0)
            self.optimizer.step()
        else:
            self.skipped += 1
        self.scaler.update(finite)
        return loss.item()


def make_signal(size=16, length=64):
    t = torch.linspace(0, 6.28, length)
    clean = torch.sin(t * (1 + 3 * torch.rand(size, 1)))[:, None]
    return clean + 0.4 * torch.randn_like(clean), clean


def main(steps=50):
    torch.manual_seed(0)
    trainer = Trainer(Denoiser())
    for i in range(steps):
        loss = trainer.step(*make_signal())
        if i % 10 == 0:
            print(f"step {i} loss {loss:.4f} scale {trainer.scaler.scale:.0f} skipped {trainer.skipped}")
    return trainer


if __name__ == "__main__":
    trainer = main()
