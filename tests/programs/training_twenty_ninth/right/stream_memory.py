"""A recurrent reader of endless camera streams: at each frame it tells how full the scene is, counting the people
that came in and went out since the stream began. Trained by truncated backpropagation over chunks of frames; a stream
that ends is replaced at once, and its memory starts anew from a learned state.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(52)

STREAMS, CHUNK, CHUNKS, SIZE = 12, 6, 70, 8
LEVELS = 4


class Cameras:
    """Frames with a mark in the upper half when someone enters and in the lower half when someone leaves."""

    def __init__(self, streams):
        self.count = torch.zeros(streams, dtype=torch.long)
        self.left = torch.randint(4, 30, (streams,))

    def step(self):
        ended = self.left == 0
        self.left = torch.where(ended, torch.randint(10, 30, ended.shape), self.left - 1)
        self.count[ended] = 0
        move = torch.randint(-1, 2, self.count.shape)
        move = (self.count + move).clamp(0, LEVELS - 1) - self.count
        self.count += move
        frame = 0.2 * torch.randn(len(move), 1, SIZE, SIZE)
        column = torch.randint(0, SIZE - 1, move.shape).tolist()
        for i, (m, c) in enumerate(zip(move.tolist(), column)):
            if m:
                top = 1 if m > 0 else SIZE // 2 + 1
                frame[i, 0, top:top + 2, c:c + 2] += 1.5
        return frame, ended, self.count.clone()


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
                                     nn.Linear(8 * (SIZE // 2) ** 2, width), nn.Tanh())
        self.cell = nn.GRUCell(width, width)
        self.start = nn.Parameter(torch.zeros(width))
        self.output = nn.Linear(width, LEVELS)

    def begin(self, streams):
        return self.start.expand(streams, -1)

    def forward(self, frame, ended, state):
        state = torch.where(ended.unsqueeze(1), self.start, state)
        state = self.cell(self.encoder(frame), state)
        return self.output(state), state


def read_chunk(model, cameras, state):
    """Mean loss of a chunk, its correct answers, and the state after it, cut from the chunk's graph."""
    loss, hits = 0.0, 0
    for _ in range(CHUNK):
        frame, ended, count = cameras.step()
        logits, state = model(frame, ended, state)
        loss = loss + F.cross_entropy(logits, count) / CHUNK
        hits += (logits.detach().argmax(dim=1) == count).sum().item()
    return loss, hits / (CHUNK * len(state)), state.detach()


@torch.no_grad()
def evaluate(model, streams=32, chunks=5):
    cameras = Cameras(streams)
    state, total = model.begin(streams), 0.0
    for _ in range(chunks):
        _, share, state = read_chunk(model, cameras, state)
        total += share
    return total / chunks


def main():
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 10))
    cameras = Cameras(STREAMS)
    state = model.begin(STREAMS)
    smooth = None
    for chunk in range(CHUNKS):
        loss, share, state = read_chunk(model, cameras, state)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        smooth = loss.detach() if smooth is None else smooth.lerp_(loss.detach(), 0.1)
        if chunk % 14 == 13:
            print(f"chunk {chunk + 1}: loss {smooth.item():.3f} right {share:.2f} held-out {evaluate(model):.2f}")
    return model


if __name__ == "__main__":
    model = main()
