"""Predicts the wear of a bearing from its vibration features; the training is split over two jobs with a checkpoint."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

FEATURES = 20


def make_data(n):
    x = torch.randn(n, FEATURES)
    speed, load, heat = x[:, 0], x[:, 1], x[:, 2]
    wear = torch.tanh(speed * load) + 0.5 * torch.relu(heat) + 0.3 * torch.sin(2 * x[:, 3]) + 0.2 * x[:, 4:8].sum(dim=1)
    return x, wear + 0.05 * torch.randn(n)


class WearNet(nn.Module):
    def __init__(self, width=64, depth=2):
        super().__init__()
        self.inlet = nn.Linear(FEATURES, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.outlet = nn.Linear(width, 1)

    def forward(self, x):
        h = F.silu(self.inlet(x))
        for layer in self.layers:
            h = h + F.silu(layer(h))
        return self.outlet(h).squeeze(-1)


class Trainer:
    def __init__(self, model, data, lr=2e-3, batch_size=64, total_steps=400):
        self.model = model
        self.inputs, self.targets = data
        self.batch_size = batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, start_factor=1.0, end_factor=0.1, total_iters=total_steps
        )
        self.step = 0

    def save(self, path):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "step": self.step,
                "rng": torch.get_rng_state(),
            },
            path,
        )

    def resume(self, path):
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"], strict=True, assign=True)
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.step = state["step"]
        torch.set_rng_state(state["rng"])

    def fit(self, until):
        self.model.train()
        running = []
        while self.step < until:
            rows = torch.randint(0, len(self.inputs), (self.batch_size,))
            loss = F.mse_loss(self.model(self.inputs[rows]), self.targets[rows])
            self.model.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            running.append(loss.item())
            if self.step % 50 == 0:
                lr = self.schedule.get_last_lr()[0]
                print(f"step {self.step:4d}  lr {lr:.5f}  loss {sum(running[-50:]) / len(running[-50:]):.4f}")

    @torch.no_grad()
    def test(self, inputs, targets):
        self.model.eval()
        return F.mse_loss(self.model(inputs), targets).item()


def first_job(path, data, test_set):
    trainer = Trainer(WearNet(), data)
    trainer.fit(until=100)
    trainer.save(path)
    return trainer.test(*test_set)


def second_job(path, data, test_set):
    trainer = Trainer(WearNet(), data)
    trainer.resume(path)
    trainer.fit(until=400)
    return trainer, trainer.test(*test_set)


def main():
    torch.manual_seed(23)
    data, test_set = make_data(1500), make_data(500)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wear.pt")
        first_error = first_job(path, data, test_set)
        print(f"first job done, test error {first_error:.4f}")
        saved = torch.load(path, weights_only=True)
        trainer, second_error = second_job(path, data, test_set)
        print(f"second job done, test error {second_error:.4f}")
    return trainer, saved, first_error, second_error


if __name__ == "__main__":
    trainer, saved, first_error, second_error = main()
