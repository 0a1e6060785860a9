import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(6)
CELLS, STEPS, DT = 24, 12, 0.2


def simulate(n):
    u = torch.randn(n, CELLS).cumsum(1)
    u = u - u.mean(1, keepdim=True)
    frames = [u]
    for _ in range(STEPS - 1):
        lap = u.roll(1, 1) + u.roll(-1, 1) - 2 * u
        u = u + DT * lap
        frames.append(u)
    return torch.stack(frames, dim=1)


class Stencil(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 8, 3, padding=1, padding_mode="circular"), nn.Tanh(),
            nn.Conv1d(8, 1, 1))

    def forward(self, u):
        return self.conv(u.unsqueeze(1)).squeeze(1)


@torch.no_grad()
def rollout_error(net, clips):
    state, *future = clips.unbind(1)
    total = 0.0
    for truth in future:
        state.add_(net(state), alpha=DT)
        total += F.mse_loss(state, truth).item()
    return total / len(future)


train, held = simulate(64), simulate(32)
net = Stencil()
opt = torch.optim.NAdam(net.parameters(), lr=0.01)
for epoch in range(6):
    for rows in torch.randperm(len(train)).split(16):
        now, nxt = train[rows, :-1].flatten(0, 1), train[rows, 1:].flatten(0, 1)
        loss = F.mse_loss(now + DT * net(now), nxt)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} one-step {loss.item():.5f} rollout {rollout_error(net, held):.5f}")
