"""Truncated back-propagation through time: the state is carried over chunks, its gradient stops at the border."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
BATCH, CHUNK, LENGTH, LAG = 32, 20, 160, 3


def record(batch, length):
    pushes = (torch.rand(batch, length) < 0.3).float()
    level = torch.zeros(batch, length)
    for t in range(1, length):
        old = pushes[:, t - LAG] if t >= LAG else torch.zeros(batch)
        level[:, t] = 0.8 * level[:, t - 1] + 0.5 * old
    return pushes[..., None], level + 0.02 * torch.randn(batch, length)


lstm = nn.LSTM(1, 24, batch_first=True)
readout = nn.Linear(24, 1)
parameters = [*lstm.parameters(), *readout.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
inputs, target = record(BATCH, LENGTH)
test_inputs, test_target = record(64, 100)

for epoch in range(22):
    state = None
    total = 0.0
    for start in range(0, LENGTH, CHUNK):
        out, state = lstm(inputs[:, start:start + CHUNK], state)
        loss = F.mse_loss(readout(out).squeeze(-1), target[:, start:start + CHUNK])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        # the values go on into the next chunk, the graph of this one ends here
        state = tuple(s.detach() for s in state)
        total += loss.item() * CHUNK / LENGTH
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} train mse {total:.4f}")

with torch.no_grad():
    out, _ = lstm(test_inputs)
    error = F.mse_loss(readout(out).squeeze(-1), test_target).item()
print(f"test mse {error:.4f} of variance {test_target.var().item():.4f}")
