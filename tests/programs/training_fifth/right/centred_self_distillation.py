"""DINO-like self-distillation: momentum teacher without gradient, sharpened and centred targets."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

CLASSES, DIM, NUISANCE, OUT = 6, 16, 8, 32
prototypes = 1.2 * torch.randn(CLASSES, DIM)


def make_windows(n):
    labels = torch.randint(CLASSES, (n,))
    return torch.cat([prototypes[labels] + 0.5 * torch.randn(n, DIM), torch.randn(n, NUISANCE)], 1), labels


def augment(x):
    signal = x[:, :DIM] + 0.4 * torch.randn(len(x), DIM)
    return torch.cat([signal, torch.randn(len(x), NUISANCE)], 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(DIM + NUISANCE, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, OUT, bias=False)

    def forward(self, x):
        return self.head(F.normalize(self.backbone(x), dim=-1))


class SelfDistillation:
    def __init__(self, lr=2e-3):
        self.student = Net()
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.centre = torch.zeros(OUT)
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=lr)

    @torch.no_grad()
    def targets(self, views):
        logits = [self.teacher(v) for v in views]
        soft = [((t - self.centre) / 0.04).softmax(-1) for t in logits]
        self.centre = 0.9 * self.centre + 0.1 * torch.cat(logits).mean(0)
        return soft

    @torch.no_grad()
    def follow(self, momentum):
        for slow, quick in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(quick, 1 - momentum)

    def step(self, a, b, momentum):
        ta, tb = self.targets((a, b))
        sa, sb = (F.log_softmax(self.student(v) / 0.1, -1) for v in (a, b))
        loss = -0.5 * ((ta * sb).sum(-1).mean() + (tb * sa).sum(-1).mean())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow(momentum)
        return loss.item()


@torch.no_grad()
def neighbour_accuracy(backbone, bank, bank_labels, queries, labels):
    keys = F.normalize(backbone(bank), dim=-1)
    votes = bank_labels[(F.normalize(backbone(queries), dim=-1) @ keys.T).topk(5, dim=1).indices]
    return (votes.mode(1).values == labels).float().mean().item()


windows, labels = make_windows(512)
test, test_labels = make_windows(400)
trainer = SelfDistillation()
for epoch in range(20):
    momentum = 0.9 + 0.09 * epoch / 20
    for index in torch.randperm(len(windows)).split(64):
        loss = trainer.step(augment(windows[index]), augment(windows[index]), momentum)
    if epoch % 5 == 4:
        accuracy = neighbour_accuracy(trainer.teacher.backbone, windows, labels, test, test_labels)
        print(f"epoch {epoch}  loss {loss:.3f}  5-nn accuracy of the teacher {accuracy:.3f}")
