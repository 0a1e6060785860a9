"""Clips in which a referee shows a card in the first frames and play goes on after it: which of four cards was it?

A convolutional recurrent cell reads the clip frame by frame, as it would read a camera; the decision is taken from
its state at the last frame.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

FRAMES, SIZE, CARDS = 6, 10, 4


def clips(count):
    video = 0.3 * torch.randn(count, FRAMES, 1, SIZE, SIZE)
    label = torch.randint(0, CARDS, (count,))
    top = torch.randint(0, SIZE - 4, (count, 2))
    for i in range(count):
        y, x = top[i].tolist()
        card = video[i, :2, 0, y:y + 5, x:x + 5]
        if label[i] == 0:
            card[:, :, 2] += 2.0
        elif label[i] == 1:
            card[:, 2, :] += 2.0
        elif label[i] == 2:
            card[:, range(5), range(5)] += 2.0
        else:
            card[:, range(5), range(4, -1, -1)] += 2.0
        for t in range(2, FRAMES):
            by, bx = torch.randint(0, SIZE - 2, (2,)).tolist()
            video[i, t, 0, by:by + 2, bx:bx + 2] += 1.5
    return video, label


class ConvGRUCell(nn.Module):
    def __init__(self, inp, width):
        super().__init__()
        self.gates = nn.Conv2d(inp + width, 2 * width, 3, padding=1)
        self.candidate = nn.Conv2d(inp + width, width, 3, padding=1)
        nn.init.constant_(self.gates.bias[:width], 1.5)

    def forward(self, x, state):
        keep, reset = torch.sigmoid(self.gates(torch.cat([x, state], dim=1))).chunk(2, dim=1)
        fresh = torch.tanh(self.candidate(torch.cat([x, reset * state], dim=1)))
        return keep * state + (1 - keep) * fresh


class ClipReader(nn.Module):
    """Reads one frame per call and carries its state from frame to frame until `restart`."""

    def __init__(self, width=12):
        super().__init__()
        self.width = width
        self.encoder = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        self.cell = ConvGRUCell(width, width)
        self.classifier = nn.Linear(width, CARDS)
        self.state = None

    def restart(self, count):
        self.state = torch.zeros(count, self.width, SIZE // 2, SIZE // 2)

    def forward(self, frame):
        state = self.cell(self.encoder(frame), self.state)
        self.state = state.detach()
        return self.classifier(state.amax(dim=(2, 3)))


def read_clip(model, video):
    model.restart(len(video))
    for frame in video.unbind(dim=1):
        logits = model(frame)
    return logits


@torch.no_grad()
def accuracy(model, video, label):
    return (read_clip(model, video).argmax(dim=1) == label).float().mean().item()


model = ClipReader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train_video, train_label = clips(160)
test_video, test_label = clips(64)

for step in range(60):
    rows = torch.randperm(len(train_video))[:16]
    video, label = train_video[rows], train_label[rows]
    logits = read_clip(model, video)
    loss = F.cross_entropy(logits, label)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.3f} held-out {accuracy(model, test_video, test_label):.3f}")
