"""Distils a small full-precision language model into one with 3-bit weights and learned step sizes (LSQ, Esser 2020)."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(47)

VOCAB, DIM, HIDDEN, LENGTH = 24, 24, 64, 6
BITS, TEMPERATURE = 3, 2.0

chain = torch.randn(VOCAB, VOCAB, VOCAB).mul(2.0).softmax(dim=-1)


def windows(n):
    ids = [torch.randint(VOCAB, (n,)), torch.randint(VOCAB, (n,))]
    for _ in range(LENGTH - 2):
        ids.append(torch.multinomial(chain[ids[-2], ids[-1]], 1).squeeze(1))
    return torch.stack(ids, dim=1)


def scale_gradient(x, factor):
    return (x - x * factor).detach() + x * factor


def round_through(x):
    return (x.round() - x).detach() + x


class StepQuantizer(nn.Module):
    """Stands behind a weight as its parametrization; low-bit grid with one learned step."""

    def __init__(self, weight):
        super().__init__()
        self.low, self.high = -2 ** (BITS - 1), 2 ** (BITS - 1) - 1
        self.step = nn.Parameter(2 * weight.detach().abs().mean() / self.high ** 0.5)
        self.factor = 1.0 / (weight.numel() * self.high) ** 0.5

    def forward(self, weight):
        step = scale_gradient(self.step, self.factor)
        return round_through((weight / step).clamp(self.low, self.high)) * step


class WindowLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.hidden = nn.Linear(2 * DIM, HIDDEN)
        self.middle = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, VOCAB)

    def forward(self, ids):
        x = self.embed(ids)
        x = torch.cat([x[:, :-1], x[:, 1:]], dim=-1)
        return self.out(F.relu(self.middle(F.relu(self.hidden(x)))))


def next_symbol_loss(logits, ids):
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 2:].flatten())


def held_out_loss(model, ids):
    with torch.no_grad():
        return next_symbol_loss(model(ids[:, :-1]), ids).item()


teacher = WindowLM()
optimizer = torch.optim.Adam(teacher.parameters(), lr=5e-3)
for _ in range(400):
    ids = windows(64)
    loss = next_symbol_loss(teacher(ids[:, :-1]), ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
held_out = windows(2000)
print(f"full precision: {held_out_loss(teacher, held_out):.4f}")

student = copy.deepcopy(teacher)
teacher.requires_grad_(False).eval()
for layer in (student.hidden, student.middle):
    nn.utils.parametrize.register_parametrization(layer, "weight", StepQuantizer(layer.weight))
print(f"{BITS} bits, rounded only: {held_out_loss(student, held_out):.4f}")

steps = [p for name, p in student.named_parameters() if name.endswith(".step")]
rest = [p for name, p in student.named_parameters() if not name.endswith(".step")]
optimizer = torch.optim.Adam([{"params": rest}, {"params": steps, "lr": 5e-4}], lr=2e-3)
first = [s.item() for s in steps]
for _ in range(300):
    ids = windows(64)
    student_logits, teacher_logits = student(ids[:, :-1]), teacher(ids[:, :-1])
    soft = F.kl_div(F.log_softmax(student_logits / TEMPERATURE, dim=-1).flatten(0, 1),
                    F.log_softmax(teacher_logits / TEMPERATURE, dim=-1).flatten(0, 1),
                    reduction="batchmean", log_target=True) * TEMPERATURE ** 2
    loss = 0.7 * soft + 0.3 * next_symbol_loss(student_logits, ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
levels = [len(torch.unique((l.weight / s).round())) for l, s in zip((student.hidden, student.middle), steps)]
print(f"{BITS} bits, distilled: {held_out_loss(student, held_out):.4f}, levels in use {levels}, "
      f"steps {[round(v, 4) for v in first]} -> {[round(s.item(), 4) for s in steps]}")
