"""Distil a sentence classifier into a smaller one by matching temperature softened outputs."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, TOPICS, LENGTH = 60, 5, 12


def make_corpus(count, generator):
    """Sentences of a topic: words drawn from a topic distribution mixed with a common one."""
    topics = torch.randint(TOPICS, (count,), generator=generator)
    word_probs = torch.softmax(1.3 * torch.randn(TOPICS, VOCAB, generator=torch.Generator().manual_seed(5)), -1)
    mixed = 0.55 * word_probs[topics] + 0.45 / VOCAB
    return torch.multinomial(mixed, LENGTH, replacement=True, generator=generator), topics


class SentenceEncoder(nn.Module):
    def __init__(self, width, depth, dropout):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.input_dropout = nn.Dropout(dropout)
        layers = []
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.GELU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, TOPICS)

    def forward(self, ids):
        return self.head(self.body(self.input_dropout(self.embed(ids)).mean(dim=1)))


class Distiller(nn.Module):
    """Holds the pair of models; its forward gives the training loss of the student."""

    def __init__(self, teacher, student, temperature=2.0, alpha=0.9):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.temperature, self.alpha = temperature, alpha

    def forward(self, ids, topics):
        with torch.no_grad():
            target = F.log_softmax(self.teacher(ids) / self.temperature, dim=-1)
        logits = self.student(ids)
        soft = F.kl_div(
            F.log_softmax(logits / self.temperature, dim=-1), target, log_target=True, reduction="batchmean"
        )
        hard = F.cross_entropy(logits, topics)
        return self.alpha * self.temperature**2 * soft + (1 - self.alpha) * hard


def batches(ids, topics, size, generator):
    order = torch.randperm(len(ids), generator=generator)
    for start in range(0, len(ids), size):
        pick = order[start:start + size]
        yield ids[pick], topics[pick]


def fit(module, loss_fn, data, params, epochs, lr, name):
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(params, lr=lr)
    for epoch in range(epochs):
        module.train()
        total = 0.0
        for ids, topics in batches(*data, 64, generator):
            loss = loss_fn(ids, topics)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(ids)
        if epoch % 4 == 3:
            print(f"{name} epoch {epoch + 1:2d}  loss {total / len(data[0]):.4f}")


@torch.no_grad()
def evaluate(model, ids, topics):
    model.eval()
    return (model(ids).argmax(-1) == topics).float().mean().item()


@torch.no_grad()
def divergence(teacher, student, ids):
    teacher.eval(), student.eval()
    p, q = F.log_softmax(teacher(ids), -1), F.log_softmax(student(ids), -1)
    return F.kl_div(q, p, log_target=True, reduction="batchmean").item()


torch.manual_seed(0)
source = torch.Generator().manual_seed(2)
train_data, test_data = make_corpus(640, source), make_corpus(600, source)

teacher = SentenceEncoder(width=64, depth=2, dropout=0.5)
fit(teacher, lambda i, t: F.cross_entropy(teacher(i), t), train_data, teacher.parameters(), 8, 3e-3, "teacher")
print(f"teacher accuracy {evaluate(teacher, *test_data):.3f}")

student = SentenceEncoder(width=24, depth=1, dropout=0.0)
distiller = Distiller(teacher, student)
fit(distiller, distiller, train_data, student.parameters(), 16, 6e-3, "student")
final_kl = divergence(teacher, student, test_data[0])
print(f"student accuracy {evaluate(student, *test_data):.3f}  KL to teacher {final_kl:.4f}")
