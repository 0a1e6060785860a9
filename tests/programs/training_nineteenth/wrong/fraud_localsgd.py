"""Transaction scoring with local SGD: four workers (simulated in one process) train on their own shard and average."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

WORLD_SIZE = 4
SYNC_EVERY = 8
ROUNDS = 20
BATCH = 32
N_NUMERIC = 12


def make_transactions(n, generator):
    """Numeric features, a merchant category, and a fraud label that depends on their interaction."""
    numeric = torch.randn(n, N_NUMERIC, generator=generator)
    category = torch.randint(20, (n,), generator=generator)
    risk = torch.linspace(-2, 2, 20)[category]
    logit = 2 * numeric[:, 0] * numeric[:, 1] + risk * numeric[:, 2] + 1.5 * torch.sin(2 * numeric[:, 3]) - 1.0
    label = torch.bernoulli(torch.sigmoid(1.5 * logit), generator=generator)
    return numeric, category, label


class Scorer(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.category = nn.Embedding(20, 6)
        self.net = nn.Sequential(
            nn.Linear(N_NUMERIC + 6, hidden),
            nn.LayerNorm(hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, numeric, category):
        return self.net(torch.cat([numeric, self.category(category)], dim=1)).squeeze(1)


class Worker:
    def __init__(self, rank, model, shard, lr=0.05):
        self.model = copy.deepcopy(model)
        self.shard = shard
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, ROUNDS * SYNC_EVERY)
        self.generator = torch.Generator().manual_seed(1000 + rank)

    def local_step(self):
        numeric, category, label = self.shard
        rows = torch.randint(len(label), (BATCH,), generator=self.generator)
        loss = F.binary_cross_entropy_with_logits(self.model(numeric[rows], category[rows]), label[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()


@torch.no_grad()
def all_reduce_parameters(workers):
    """Every worker continues from the mean of all workers."""
    for group in zip(*(w.model.parameters() for w in workers)):
        mean = torch.stack([p.data for p in group]).mean(dim=0)
        for p in group:
            p.data = mean


@torch.no_grad()
def evaluate(model, data):
    numeric, category, label = data
    logits = model(numeric, category)
    loss = F.binary_cross_entropy_with_logits(logits, label).item()
    accuracy = ((logits > 0).float() == label).float().mean().item()
    return loss, accuracy


def drift(workers):
    """Largest distance of a worker from the first one, relative to its norm."""
    vectors = [nn.utils.parameters_to_vector(w.model.parameters()).detach() for w in workers]
    return max(((v - vectors[0]).norm() / vectors[0].norm()).item() for v in vectors)


torch.manual_seed(23)
data_generator = torch.Generator().manual_seed(23)
numeric, category, label = make_transactions(6000, data_generator)
val = make_transactions(3000, data_generator)
shards = [(numeric[r::WORLD_SIZE], category[r::WORLD_SIZE], label[r::WORLD_SIZE]) for r in range(WORLD_SIZE)]
initial = Scorer()
workers = [Worker(r, initial, shards[r]) for r in range(WORLD_SIZE)]

drifts = []
for r in range(ROUNDS):
    losses = [worker.local_step() for _ in range(SYNC_EVERY) for worker in workers]
    drifts.append(drift(workers))
    all_reduce_parameters(workers)
    if r % 5 == 4:
        val_loss, val_acc = evaluate(workers[0].model, val)
        assert math.isfinite(val_loss)
        print(f"round {r + 1:3d}  train {sum(losses) / len(losses):.4f}  val {val_loss:.4f}  accuracy {val_acc:.3f}")
final_loss, final_acc = evaluate(workers[0].model, val)
print(f"final val loss {final_loss:.4f}  accuracy {final_acc:.3f}")
