"""Sleep staging on continuous whole-night recordings, trained with truncated backpropagation through time.

Each batch lane is one recording read in order; the recurrent state runs on from one chunk to the next.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

STAGES = 4
CHANNELS = 6
LANES = 12
CHUNK = 30
NIGHT = 600


def simulate_night(rng):
    """Stages change rarely; a burst at each change tells the new stage, what follows is close to noise."""
    stages = np.empty(NIGHT, dtype=np.int64)
    signal = 0.5 * rng.standard_normal((NIGHT, CHANNELS)).astype(np.float32)
    pos = 0
    current = rng.integers(STAGES)
    while pos < NIGHT:
        length = int(rng.integers(25, 60))
        stages[pos:pos + length] = current
        signal[pos:pos + 2, current] += 2.5
        pos += length
        current = (current + rng.integers(1, STAGES)) % STAGES
    return signal, stages


def make_lanes(n, rng):
    nights = [simulate_night(rng) for _ in range(n)]
    x = torch.from_numpy(np.stack([s for s, _ in nights]))
    y = torch.from_numpy(np.stack([t for _, t in nights]))
    return x, y


class StageNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.inp = nn.Linear(CHANNELS, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, STAGES)

    def forward(self, x, state=None):
        h, state = self.lstm(torch.tanh(self.inp(x)), state)
        return self.out(h), state


def cut(state):
    return tuple(s.detach() for s in state)


@torch.no_grad()
def evaluate(net, x, y, keep_state=True):
    net.eval()
    state, hits = None, []
    for start in range(0, NIGHT, CHUNK):
        logits, state = net(x[:, start:start + CHUNK], state if keep_state else None)
        hits.append(logits.argmax(-1) == y[:, start:start + CHUNK])
    net.train()
    return torch.cat(hits, 1).float().mean().item()


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    x, y = make_lanes(LANES, rng)
    test_x, test_y = make_lanes(16, rng)
    net = StageNet()
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)
    for epoch in range(14):
        state = None
        total = 0.0
        # the order within a night matters, so the chunks are not shuffled
        for start in range(0, NIGHT, CHUNK):
            logits, state = net(x[:, start:start + CHUNK], state)
            loss = F.cross_entropy(logits.flatten(0, 1), y[:, start:start + CHUNK].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            state = cut(state)
            total += loss.item()
        if epoch % 3 == 1:
            print(f"epoch {epoch} loss {total / (NIGHT // CHUNK):.3f}")
    running = evaluate(net, test_x, test_y)
    reset = evaluate(net, test_x, test_y, keep_state=False)
    print(f"accuracy with running state {running:.3f}, with state reset at every chunk {reset:.3f}")


if __name__ == "__main__":
    main()
