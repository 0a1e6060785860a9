import torch
from torch import nn

torch.manual_seed(21)


class Gauge:
    def __init__(self, module, ceiling):
        self.module, self.ceiling = module, ceiling

    def bound(self):
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        factor = (self.ceiling / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor)
        return total.item()


class Forecaster(nn.Module):
    def __init__(self, history=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(history, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, past):
        return self.net(past).squeeze(-1)


class Runner:
    def __init__(self, model, pieces=4):
        self.model, self.pieces = model, pieces
        self.gauge = Gauge(model, ceiling=0.5)
        self.opt = torch.optim.SGD(model.parameters(), lr=0.05)

    def update(self, past, nxt):
        self.opt.zero_grad()
        seen = 0.0
        for x, y in zip(past.chunk(self.pieces), nxt.chunk(self.pieces)):
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            (loss / self.pieces).backward()
            norm = self.gauge.bound()
            seen += loss.item() / self.pieces
        self.opt.step()
        return seen, norm


hours = torch.arange(1500.0)
level = 2.0 * torch.sin(hours * 0.506) + 0.8 * torch.sin(hours * 0.26 + 1) + 0.1 * torch.randn(1500)
spans = level.unfold(0, 25, 1)
past, nxt = spans[:, :24], spans[:, 24]

runner = Runner(Forecaster())
for epoch in range(5):
    order = torch.randperm(len(past))
    for pick in order.split(128):
        seen, norm = runner.update(past[pick], nxt[pick])
    print(f"epoch {epoch} loss {seen:.5f} norm {norm:.4f}")
