"""Long-tailed flower classification with logit adjustment; the job is split in two and continues from a checkpoint."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

N_CLASSES, DIM = 8, 16
FREQ = 0.55 ** torch.arange(N_CLASSES, dtype=torch.float32)
FREQ = FREQ / FREQ.sum()
CENTERS = torch.randn(N_CLASSES, DIM, generator=torch.Generator().manual_seed(21))


def sample(n, gen, balanced=False):
    weights = torch.ones(N_CLASSES) if balanced else FREQ
    y = torch.multinomial(weights, n, replacement=True, generator=gen)
    return 0.6 * CENTERS[y] + torch.randn(n, DIM, generator=gen), y


class FlowerNet(nn.Module):
    """Classifier whose training logits are shifted by the running log-prior of the label stream."""

    def __init__(self, hidden=48, momentum=0.998, tau=1.0):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIM, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(hidden, N_CLASSES)
        self.momentum, self.tau = momentum, tau
        self.class_prior = torch.full((N_CLASSES,), 1.0 / N_CLASSES)

    def forward(self, x):
        return self.head(self.body(x))

    @torch.no_grad()
    def observe(self, y):
        batch_freq = torch.bincount(y, minlength=N_CLASSES).float() / len(y)
        self.class_prior = self.momentum * self.class_prior + (1 - self.momentum) * batch_freq

    def loss(self, x, y):
        if self.training:
            self.observe(y)
        return F.cross_entropy(self(x) + self.tau * (self.class_prior + 1e-6).log(), y)


class Trainer:
    def __init__(self, total_steps, batch_size=64, lr=2e-3):
        self.model = FlowerNet()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-3)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: max(0.05, 1 - s / total_steps))
        self.gen = torch.Generator().manual_seed(100)
        self.batch_size, self.step = batch_size, 0

    def run_until(self, last_step):
        self.model.train()
        while self.step < last_step:
            loss = self.model.loss(*sample(self.batch_size, self.gen))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
            self.step += 1
            if self.step % 300 == 0:
                print(f"step {self.step:5d}  loss {loss.item():.3f}  lr {self.sched.get_last_lr()[0]:.5f}")

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
                    "gen": self.gen.get_state(), "rng": torch.get_rng_state(), "step": self.step}, path)

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["opt"])
        self.sched.load_state_dict(state["sched"])
        self.gen.set_state(state["gen"])
        torch.set_rng_state(state["rng"])
        self.step = state["step"]


@torch.no_grad()
def per_class_recall(model, n=4000):
    model.eval()
    x, y = sample(n, torch.Generator().manual_seed(555), balanced=True)
    hit = (model(x).argmax(dim=1) == y).float()
    return torch.stack([hit[y == c].mean() for c in range(N_CLASSES)])


def main():
    torch.manual_seed(0)
    total, pause_at = 1500, 1200
    path = os.path.join(tempfile.mkdtemp(), "orchid.pt")

    first = Trainer(total)
    first.run_until(pause_at)
    first.save(path)

    second = Trainer(total)
    second.load(path)
    print(f"continuing at step {second.step}")
    second.run_until(total)

    recall = per_class_recall(second.model)
    print("recall per class", " ".join(f"{r:.2f}" for r in recall.tolist()))
    print(f"balanced accuracy {recall.mean():.3f}   rarest three classes {recall[-3:].mean():.3f}")
    return recall


if __name__ == "__main__":
    main()
