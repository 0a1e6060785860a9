"""Classification of bag-of-words reviews with a bfloat16 model and float32 master weights."""
import torch
from torch import nn
from torch.nn import functional as F

WORDS, CLASSES = 80, 4
WARMUP, STEPS = 10, 200


def make_reviews(count, generator):
    topics = torch.rand(CLASSES, WORDS, generator=torch.Generator().manual_seed(77)) ** 4
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    rate = 0.4 * topics[labels] + 0.05
    return torch.poisson(rate, generator=generator), labels


class ReviewNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.inlet = nn.Linear(WORDS, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.outlet = nn.Linear(hidden, CLASSES)

    def forward(self, counts):
        h = F.relu(self.norm(self.inlet(counts)))
        return self.outlet(h + F.relu(self.middle(h)))


class MasterWeights:
    """Float32 copies of a low precision model's parameters, for the optimizer."""

    def __init__(self, model):
        self.model_params = [p for p in model.parameters() if p.requires_grad]
        self.params = [p.detach().clone().float().requires_grad_(True) for p in self.model_params]

    def take_gradients(self):
        for master, p in zip(self.params, self.model_params):
            if p.grad is None:
                continue
            if master.grad is None:
                master.grad = p.grad.detach().float()
            else:
                master.grad.add_(p.grad.detach().float())
            p.grad = None

    def copy_to_model(self):
        for master, p in zip(self.params, self.model_params):
            p.data.copy_(master.data)


def learning_rate(step):
    """Linear warm-up from zero, then decay with the inverse square root."""
    return step / WARMUP if step < WARMUP else (WARMUP / step) ** 0.5


@torch.no_grad()
def accuracy(model, data):
    counts, labels = data
    return (model(counts.bfloat16()).argmax(1) == labels).float().mean().item()


def train(micro_batches=2, size=32):
    generator = torch.Generator().manual_seed(4)
    counts, labels = make_reviews(3000, generator)
    valid = make_reviews(500, generator)

    model = ReviewNet().to(torch.bfloat16)
    masters = MasterWeights(model)
    optimizer = torch.optim.AdamW(masters.params, lr=1.5e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)

    for step in range(1, STEPS + 1):
        total = 0.0
        for _ in range(micro_batches):
            idx = torch.randint(0, len(counts), (size,), generator=generator)
            logits = model(counts[idx].bfloat16())
            loss = F.cross_entropy(logits.float(), labels[idx]) / micro_batches
            loss.backward()
            masters.take_gradients()
            total += loss.item()
        nn.utils.clip_grad_norm_(masters.params, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        masters.copy_to_model()
        if step % 40 == 0:
            print(f"step {step:4d}  loss {total:.4f}  accuracy {accuracy(model, valid):.3f}")
    return model, masters


if __name__ == "__main__":
    torch.manual_seed(19)
    model, masters = train()
