import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(41)


class Keyword(nn.Module):
    def __init__(self, mels, words):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(mels, 24, 5, padding=2), nn.ReLU(),
            nn.Conv1d(24, 24, 5, padding=2), nn.ReLU(),
        )
        self.word = nn.Linear(24, words)

    def forward(self, frames):
        return self.word(self.net(frames).mean(-1))


class Disturb:
    def __init__(self, model, size, rounds):
        self.model, self.size, self.rounds = model, size, rounds

    def __call__(self, frames, words):
        shift = torch.zeros_like(frames)
        for _ in range(self.rounds):
            shift.requires_grad_(True)
            F.cross_entropy(self.model(frames + shift), words).backward()
            with torch.no_grad():
                shift = (shift + self.size / 2 * shift.grad.sign()).clamp(-self.size, self.size)
        return frames + shift.detach()


def clips(n, shapes):
    words = torch.randint(len(shapes), (n,))
    gain = 0.5 + torch.rand(n, 1, 1)
    return gain * shapes[words] + 0.8 * torch.randn(n, *shapes.shape[1:]), words


class Training:
    def __init__(self, model, disturb):
        self.model, self.disturb = model, disturb
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(self, frames, words):
        hard = self.disturb(frames, words)
        self.opt.zero_grad()
        loss = F.cross_entropy(self.model(hard), words)
        loss.backward()
        self.opt.step()
        return loss.item()


shapes = torch.randn(6, 10, 20) * 0.4 + torch.randn(6, 10, 1) * 0.4
model = Keyword(10, 6)
training = Training(model, Disturb(model, 0.15, 2))
frames_test, words_test = clips(200, shapes)
for step in range(1, 61):
    loss = training.step(*clips(32, shapes))
    if step % 15 == 0:
        with torch.no_grad():
            hit = (model(frames_test).argmax(1) == words_test).float().mean().item()
        print(f"step {step} loss {loss:.4f} clean accuracy {hit:.3f}")
