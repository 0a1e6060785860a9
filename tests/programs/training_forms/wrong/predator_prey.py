import torch
from torch import nn

torch.manual_seed(41)
GROW, EAT, GAIN, DIE = 1.1, 0.4, 0.1, 0.4
START = torch.tensor([2.0, 1.0])


class Populations(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )

    def forward(self, t):
        return START + t * self.layers(t)


def dynamics(state):
    hare, lynx = state.unbind(-1)
    return torch.stack([GROW * hare - EAT * hare * lynx, GAIN * hare * lynx - DIE * lynx], -1)


def speed(model, t):
    state, pull = torch.func.vjp(model, t)
    (rate,) = pull(torch.ones_like(state))
    return state, rate


def residual(model, t):
    state, rate = speed(model, t)
    return (rate - dynamics(state)).square().mean()


model = Populations()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.995)
for step in range(200):
    t = torch.rand(64, 1) * 2.0
    loss = residual(model, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    decay.step()
    if step % 50 == 49:
        print(f"step {step} residual {loss.item():.5f}")
with torch.no_grad():
    print("state at t = 2:", [round(v, 3) for v in model(torch.tensor([[2.0]]))[0].tolist()])
