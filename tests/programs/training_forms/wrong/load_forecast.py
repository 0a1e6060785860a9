import torch
from torch import nn

torch.manual_seed(83)
HOURS, WIDTH = 16, 16


def history_mask(n):
    return ~torch.ones(n, n, dtype=torch.bool).triu()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(1, WIDTH)
        self.clock = nn.Parameter(0.1 * torch.randn(HOURS, WIDTH))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.read = nn.Linear(WIDTH, 1)
        self.register_buffer("mask", history_mask(HOURS))

    def forward(self, load):
        h = self.lift(load[..., None]) + self.clock
        for block in self.blocks:
            h = block(h, src_mask=self.mask)
        return self.read(h).squeeze(-1)


def grid_load(n):
    level = torch.zeros(n, HOURS + 1)
    pull = 0.5 + 0.4 * torch.rand(n, 1)
    state = torch.randn(n)
    for t in range(HOURS + 1):
        state = pull[:, 0] * state + 0.6 * torch.randn(n)
        level[:, t] = state
    return level


class Fit:
    def __init__(self, net, rate):
        self.net = net
        self.opt = torch.optim.AdamW(net.parameters(), lr=rate)

    def error(self, level):
        return nn.functional.mse_loss(self.net(level[:, :-1]), level[:, 1:])

    def __call__(self, level):
        loss = self.error(level)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


level = grid_load(600)
fit = Fit(Forecaster(), 3e-3)
for step in range(100):
    loss = fit(level[torch.randint(500, (48,))])
    if step % 25 == 24:
        print(f"step {step + 1}: mse {loss:.4f}")
with torch.no_grad():
    print(f"test mse {fit.error(level[500:]).item():.4f}")
