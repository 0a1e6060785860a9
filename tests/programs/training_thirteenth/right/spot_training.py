"""Churn model trained on spot instances: a run may be stopped after any micro-batch and goes on elsewhere.

The checkpoint holds everything that the next micro-batch depends on, so that a run stopped in the middle of an
accumulation window ends with the same weights as one that was never stopped. The last lines check this.
"""
import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 29
N_ROWS, N_NUM, CARDINALITIES = 3000, 10, (12, 7, 30)
MICRO, ACCUM, TOTAL_MICRO = 50, 4, 700
STOPS = (131, 402, 555)

rng = np.random.default_rng(SEED)
num = torch.tensor(rng.standard_normal((N_ROWS, N_NUM)), dtype=torch.float32)
cat = torch.tensor(np.stack([rng.integers(0, c, N_ROWS) for c in CARDINALITIES], 1))
effects = [torch.tensor(rng.normal(0, 1.0, c), dtype=torch.float32) for c in CARDINALITIES]
logit = num[:, 0] * num[:, 1] + num[:, 2] + sum(e[cat[:, j]] for j, e in enumerate(effects))
label = (torch.tensor(rng.random(N_ROWS)) < torch.sigmoid(2 * logit)).float()
TRAIN = 2400


class ChurnNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, 6) for c in CARDINALITIES)
        width = N_NUM + 6 * len(CARDINALITIES)
        self.net = nn.Sequential(
            nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1)
        )

    def forward(self, num, cat):
        parts = [table(cat[:, j]) for j, table in enumerate(self.tables)]
        return self.net(torch.cat([num, *parts], dim=1)).squeeze(1)


class Run:
    def __init__(self):
        torch.manual_seed(SEED)
        self.model = ChurnNet()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=6e-3, weight_decay=0.05)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, TOTAL_MICRO // ACCUM)
        self.micro = 0

    def save(self):
        file = io.BytesIO()
        torch.save(
            {
                "model": self.model.state_dict(),
                "grads": [p.grad for p in self.model.parameters()],
                "opt": self.opt.state_dict(),
                "sched": self.sched.state_dict(),
                "micro": self.micro,
                "rng": torch.get_rng_state(),
            },
            file,
        )
        return file.getvalue()

    @classmethod
    def resume(cls, blob):
        run = cls()
        state = torch.load(io.BytesIO(blob))
        run.model.load_state_dict(state["model"])
        for p, grad in zip(run.model.parameters(), state["grads"]):
            p.grad = grad
        run.opt.load_state_dict(state["opt"])
        run.sched.load_state_dict(state["sched"])
        run.micro = state["micro"]
        torch.set_rng_state(state["rng"])
        return run

    def advance(self, until):
        self.model.train()
        while self.micro < until:
            rows = torch.randint(0, TRAIN, (MICRO,))
            loss = F.binary_cross_entropy_with_logits(self.model(num[rows], cat[rows]), label[rows])
            (loss / ACCUM).backward()
            self.micro += 1
            if self.micro % ACCUM == 0:
                self.opt.step()
                self.opt.zero_grad()
                self.sched.step()

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        return ((self.model(num[TRAIN:], cat[TRAIN:]) > 0).float() == label[TRAIN:]).float().mean().item()


job = Run()
for stop in STOPS:
    job.advance(stop)
    blob = job.save()
    job = Run.resume(blob)
    print(f"stopped and resumed after micro-batch {job.micro} (lr {job.sched.get_last_lr()[0]:.5f})")
job.advance(TOTAL_MICRO)

whole = Run()
whole.advance(TOTAL_MICRO)
gap = max((a - b).abs().max().item() for a, b in zip(job.model.state_dict().values(), whole.model.state_dict().values()))
print(f"accuracy with stops {job.accuracy():.4f}  without {whole.accuracy():.4f}  largest difference {gap:.1e}")
