"""Next-note model for synthetic melodies: fixed pitch features, a two-layer GRU and a linear read-out."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(7)

N_NOTES, HIDDEN, SEQ_LEN, BATCH = 24, 32, 24, 16
STEPS, BASE_LR, MAX_NORM = 60, 1.5, 0.25
MAJOR = torch.tensor([0, 2, 4, 5, 7, 9, 11])
MOTIF = torch.tensor([2, -1, 2, -4, 1])


def pitch_table(n_notes):
    """Height, chroma circle and circle of fifths for each pitch."""
    pitch = torch.arange(n_notes).float()
    chroma = 2 * math.pi * pitch / 12
    fifths = 2 * math.pi * (7 * pitch % 12) / 12
    columns = [pitch / n_notes - 0.5, chroma.sin(), chroma.cos(), fifths.sin(), fifths.cos()]
    return torch.stack(columns, dim=1)


def sample_melodies(batch, length):
    """Melodies that walk through a major scale along a repeated motif, with a few free notes."""
    start = torch.randint(0, 14, (batch, 1))
    phase = torch.randint(0, len(MOTIF), (batch, 1))
    moves = MOTIF[(phase + torch.arange(length)) % len(MOTIF)]
    free = torch.rand(batch, length) < 0.05
    moves = torch.where(free, torch.randint(-2, 3, (batch, length)), moves)
    degree = (start + moves.cumsum(dim=1)) % 14
    return MAJOR[degree % 7] + 12 * (degree // 7)


class NoteModel(nn.Module):
    def __init__(self):
        super().__init__()
        table = pitch_table(N_NOTES)
        self.pitch = nn.Embedding.from_pretrained(table, freeze=True)
        self.gru = nn.GRU(table.shape[1], HIDDEN, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(HIDDEN)
        self.readout = nn.Linear(HIDDEN, N_NOTES)

    def forward(self, notes):
        states, _ = self.gru(self.pitch(notes))
        return self.readout(self.norm(states))


def sequence_loss(model, notes):
    logits = model(notes[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), notes[:, 1:].flatten())


@torch.no_grad()
def evaluate(model, notes):
    model.eval()
    logits = model(notes[:, :-1])
    hits = (logits.argmax(dim=-1) == notes[:, 1:]).float().mean().item()
    loss = F.cross_entropy(logits.flatten(0, 1), notes[:, 1:].flatten()).item()
    model.train()
    return loss, hits


def learning_rate(step):
    """Constant for the first half of the run, then linear to a tenth."""
    progress = max(0.0, step / STEPS - 0.5) * 2
    return BASE_LR * (1 - 0.9 * progress)


held_out = sample_melodies(64, SEQ_LEN)
model = NoteModel()
trainable = filter(lambda p: p.requires_grad, model.parameters())
optimizer = torch.optim.SGD(trainable, lr=BASE_LR)
n_trained = sum(p.numel() for g in optimizer.param_groups for p in g["params"])
print(f"{n_trained} trained values")

history = []
for step in range(STEPS):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step)
    loss = sequence_loss(model, sample_melodies(BATCH, SEQ_LEN))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, MAX_NORM)
    optimizer.step()
    history.append(loss.item())
    if (step + 1) % 20 == 0:
        val_loss, val_hits = evaluate(model, held_out)
        recent = sum(history[-20:]) / 20
        print(f"step {step + 1:3d}  train {recent:.3f}  held out {val_loss:.3f}  next-note accuracy {val_hits:.3f}")
