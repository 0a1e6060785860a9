import torch
from torch import nn

torch.manual_seed(61)
STREAMS, CHUNK, HIDDEN = 12, 15, 20


class TideModel(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.cell = nn.GRU(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, inputs)

    def forward(self, x, state):
        features, state = self.cell(x, state)
        return self.out(features), state


def tides(streams, length):
    t = torch.arange(length).float()[None, :, None]
    period = 20 + 10 * torch.rand(streams, 1, 1)
    shift = 6.28 * torch.rand(streams, 1, 1)
    level = torch.sin(6.28 * t / period + shift) + 0.3 * torch.sin(6.28 * t / (2 * period))
    return level + 0.05 * torch.randn(streams, length, 1)


def run_stream(model, series, optimizer=None):
    state = torch.zeros(1, len(series), HIDDEN)
    losses = []
    for start in range(0, series.shape[1] - 1, CHUNK):
        chunk = series[:, start : start + CHUNK + 1]
        predicted, state = model(chunk[:, :-1], state.detach())
        loss = nn.functional.mse_loss(predicted, chunk[:, 1:])
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        losses.append(loss.item())
    return losses


model = TideModel(1, HIDDEN)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
train, test = tides(STREAMS, 121), tides(STREAMS, 121)
for epoch in range(8):
    losses = run_stream(model, train, optimizer)
    print(f"epoch {epoch} first chunk {losses[0]:.4f} last chunk {losses[-1]:.4f}")
with torch.no_grad():
    losses = run_stream(model, test)
print(f"test first chunk {losses[0]:.4f} rest {sum(losses[1:]) / (len(losses) - 1):.4f}")
