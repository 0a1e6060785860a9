"""Defect size regression on small surface scans, trained in two night jobs.

The cluster gives us a limited slot, so a job trains as far as its slot allows, saves everything and the next job resumes.
"""
import math
import os
import tempfile

import torch
import torch.nn as nn

CONFIG = dict(seed=17, epochs=16, slot=6, warmup=2, lr=0.015, momentum=0.9, batch=16, size=16, channels=(8, 16))


def make_scans(n, size):
    """A dark scratch with a random place, direction and width on a rough surface; the target is its area."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = size / 2 + 3 * torch.randn(n, 2)
    angle = math.pi * torch.rand(n)
    half, width = 1.5 + 4 * torch.rand(n), 0.6 + 1.2 * torch.rand(n)
    dy, dx = yy - centre[:, :1, None], xx - centre[:, 1:, None]
    along = dx * angle.cos()[:, None, None] + dy * angle.sin()[:, None, None]
    across = -dx * angle.sin()[:, None, None] + dy * angle.cos()[:, None, None]
    mark = torch.sigmoid(4 * (half[:, None, None] - along.abs())) * torch.exp(-(across / width[:, None, None]) ** 2)
    scans = 0.15 * torch.randn(n, 1, size, size) - mark[:, None]
    area = mark.sum((1, 2))
    return scans, (area - 11.0) / 6.0 + 0.3 * torch.randn(n)


def build(cfg):
    layers, width = [], 1
    for channels in cfg["channels"]:
        layers += [nn.Conv2d(width, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)]
        width = channels
    features = width * (cfg["size"] // 2 ** len(cfg["channels"])) ** 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 1))


def warmup_cosine(cfg):
    def factor(epoch):
        if epoch < cfg["warmup"]:
            return (epoch + 1) / (cfg["warmup"] + 1)
        done = (epoch - cfg["warmup"]) / (cfg["epochs"] - cfg["warmup"])
        return 0.5 * (1 + math.cos(math.pi * done))
    return factor


class Job:
    def __init__(self, cfg, data, path):
        self.cfg, self.data, self.path = cfg, data, path
        self.model = build(cfg)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, warmup_cosine(cfg))
        self.epoch, self.history = 0, []
        if os.path.exists(path):
            state = torch.load(path)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.epoch, self.history = state["epoch"], state["history"]
            torch.set_rng_state(state["rng"])
            print(f"resumed at epoch {self.epoch}")

    def save(self):
        torch.save(dict(model=self.model.state_dict(), optimizer=self.optimizer.state_dict(), epoch=self.epoch,
                        history=self.history, rng=torch.get_rng_state()), self.path)

    def run(self, slot):
        x, y = self.data
        last = min(self.cfg["epochs"], self.epoch + slot)
        while self.epoch < last:
            self.model.train()
            for idx in torch.randperm(len(x)).split(self.cfg["batch"]):
                loss = (self.model(x[idx]).squeeze(1) - y[idx]).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.history.append(self.optimizer.param_groups[0]["lr"])
            self.scheduler.step()
            self.epoch += 1
        self.save()
        return self.epoch >= self.cfg["epochs"]


@torch.no_grad()
def test_error(model, x, y):
    model.eval()
    return (model(x).squeeze(1) - y).pow(2).mean().item()


torch.manual_seed(CONFIG["seed"])
train_data, test_data = make_scans(768, CONFIG["size"]), make_scans(1000, CONFIG["size"])
with tempfile.TemporaryDirectory() as folder:
    finished = False
    while not finished:
        job = Job(CONFIG, train_data, os.path.join(folder, "job.pt"))
        finished = job.run(CONFIG["slot"])
        print(f"epoch {job.epoch:2d}  test error {test_error(job.model, *test_data):.4f}")
final_error = test_error(job.model, *test_data)
print(f"final test error {final_error:.4f}")
