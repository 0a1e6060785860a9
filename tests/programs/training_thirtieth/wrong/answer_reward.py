"""Reward model on pairs of answers, with a margin for how much better the chosen one was rated."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, DIM = 36, 10, 24
MARGINS = torch.tensor([0.0, 1.0, 2.0, 3.0])


class PairSource:
    """Answers with a hidden quality per word; annotators say which is better and in four grades by how much."""

    def __init__(self, generator):
        self.generator = generator
        self.word_quality = torch.randn(VOCAB, generator=generator)

    def quality(self, answers):
        return self.word_quality[answers].mean(dim=1) * LENGTH**0.5

    def sample(self, count):
        first, second = torch.randint(VOCAB, (2, count, LENGTH), generator=self.generator)
        gap = self.quality(first) - self.quality(second)
        swap = (gap < 0).unsqueeze(1)
        chosen, rejected = torch.where(swap, second, first), torch.where(swap, first, second)
        grade = torch.bucketize(gap.abs(), torch.tensor([0.5, 1.1, 1.9]))
        return chosen, rejected, MARGINS[grade]


class RewardModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.value_head = nn.Linear(DIM, 1)
        nn.init.normal_(self.value_head.weight, std=0.1)
        nn.init.zeros_(self.value_head.bias)

    def forward(self, answers):
        hidden, _ = self.rnn(self.embed(answers))
        return self.value_head(self.norm(hidden.mean(dim=1)))


def preference_loss(chosen_reward, rejected_reward, margin):
    return -F.logsigmoid(chosen_reward - rejected_reward - margin).mean()


def score_pairs(model, chosen, rejected):
    rewards = model(torch.cat([chosen, rejected]))
    return rewards.chunk(2)


@torch.no_grad()
def evaluate(model, batch):
    chosen, rejected, margin = batch
    model.eval()
    good, bad = score_pairs(model, chosen, rejected)
    model.train()
    gap = (good - bad).flatten()
    by_margin = [gap[margin == m].mean().item() for m in MARGINS]
    return (gap > 0).float().mean().item(), by_margin


def train(model, source, steps, batch_size):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=5e-3
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        chosen, rejected, margin = source.sample(batch_size)
        chosen_reward, rejected_reward = score_pairs(model, chosen, rejected)
        loss = preference_loss(chosen_reward, rejected_reward, margin)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 25 == 24:
            accuracy, _ = evaluate(model, source.sample(200))
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  accuracy {accuracy:.3f}")


torch.manual_seed(8)
source = PairSource(torch.Generator().manual_seed(12))
test_batch = source.sample(600)
model = RewardModel()
train(model, source, steps=100, batch_size=32)
accuracy, gaps = evaluate(model, test_batch)
print(f"test accuracy {accuracy:.3f}")
for m, gap in zip(MARGINS.tolist(), gaps):
    print(f"margin {m:.0f}: mean reward gap {gap:.2f}")
