import torch
from torch import nn
import torch.nn.functional as F


class ReviewRegressor(nn.Module):
    def __init__(self, inputs=20, width=32):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(inputs, width), nn.Tanh())
        self.upper = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def stages(self):
        return [self.head, self.upper, self.lower]

    def forward(self, x):
        return self.head(self.upper(self.lower(x))).squeeze(-1)


class StagedTrainer:
    def __init__(self, model, lr=0.05, total_steps=90, open_at=(1, 2)):
        self.model, self.lr, self.open_at = model, lr, open_at
        self.depth = 1
        for stage in model.stages()[1:]:
            stage.requires_grad_(False)
        self.opt = self._optimizer()
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=total_steps, eta_min=1e-4)
        self.history = []

    def _optimizer(self):
        live = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.SGD(live, lr=self.lr, momentum=0.9)

    def open_next(self):
        stage = self.model.stages()[self.depth]
        stage.requires_grad_(True)
        self.depth += 1
        self.opt = self._optimizer()

    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        self.history.append(loss.item())

    def fit(self, x, y, epochs=9, batch=32):
        for epoch in range(epochs):
            if epoch in self.open_at:
                self.open_next()
            for rows in torch.arange(len(x)).split(batch):
                self.step(x[rows], y[rows])
            print(f"epoch {epoch} loss {self.history[-1]:.4f} lr {self.sched.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(4)
    x = torch.randn(320, 20, generator=g)
    y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.2 * torch.randn(320, generator=g)
    trainer = StagedTrainer(ReviewRegressor())
    trainer.fit(x, y)
