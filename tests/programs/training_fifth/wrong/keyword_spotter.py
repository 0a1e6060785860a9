"""Keyword spotting from mel frames; the convolutional encoder is checkpointed to fit long recordings into memory."""
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)

MELS, FRAMES, WORDS = 16, 40, 6
templates = torch.randn(WORDS, MELS, 8)


def make_utterances(n):
    """Every recording holds one keyword at a random time, at random loudness, in noise."""
    labels = torch.randint(WORDS, (n,))
    mel = 0.9 * torch.randn(n, MELS, FRAMES)
    start = torch.randint(0, FRAMES - 8, (n,))
    for i in range(n):
        mel[i, :, start[i]: start[i] + 8] += (0.5 + 0.5 * torch.rand(1)) * templates[labels[i]]
    return mel, labels


def block(cin, cout, stride):
    return nn.Sequential(nn.Conv1d(cin, cout, 5, stride=stride, padding=2), nn.GroupNorm(4, cout), nn.ReLU())


class Spotter(nn.Module):
    def __init__(self, width=24, segments=2):
        super().__init__()
        self.segments = segments
        self.encoder = nn.Sequential(
            block(MELS, width, 1),
            block(width, width, 2),
            block(width, width, 2),
            nn.Conv1d(width, width, 1),
        )
        self.attention = nn.Linear(width, 1)
        self.classifier = nn.Linear(width, WORDS)

    def forward(self, mel):
        if self.training:
            h = checkpoint_sequential(self.encoder, self.segments, mel, use_reentrant=True)
        else:
            h = self.encoder(mel)
        h = h.transpose(1, 2)
        weights = self.attention(h).softmax(1)
        return self.classifier((weights * h).sum(1))


def train(model, mel, labels, epochs=16, batch_size=40, lr=4e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 6, 0.5)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for index in torch.randperm(len(mel)).split(batch_size):
            loss = F.cross_entropy(model(mel[index]), labels[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(index)
        schedule.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch:2d}  loss {total / len(mel):.3f}")
    return optimizer


@torch.no_grad()
def accuracy(model, mel, labels):
    model.eval()
    return (model(mel).argmax(-1) == labels).float().mean().item()


train_set, test_set = make_utterances(320), make_utterances(400)
spotter = Spotter()
train(spotter, *train_set)
test_accuracy = accuracy(spotter, *test_set)
print(f"train accuracy {accuracy(spotter, *train_set):.3f}, test accuracy {test_accuracy:.3f}")
