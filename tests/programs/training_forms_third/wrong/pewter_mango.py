import copy

import torch
from torch import nn

torch.manual_seed(53)


class Adapted(nn.Linear):
    def __init__(self, fan_in, fan_out, rank=3):
        super().__init__(fan_in, fan_out)
        self.weight.requires_grad_(False)
        self.left = nn.Parameter(torch.zeros(fan_out, rank))
        self.right = nn.Parameter(torch.randn(rank, fan_in) * 0.2)
        self.folded = False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.folded:
            sign = -1.0 if mode else 1.0
            self.weight.data.addmm_(self.left.data, self.right.data, alpha=sign)
            self.folded = not mode
        return self

    def forward(self, x):
        y = super().forward(x)
        return y if self.folded else y + x @ self.right.t() @ self.left.t()


def check(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


torch.manual_seed(54)
model = nn.Sequential(Adapted(8, 32), nn.Tanh(), Adapted(32, 4))
true = torch.randn(8, 4) * 0.7
held = torch.randn(128, 8)
held_y = torch.tanh(held @ true)
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
best, kept = float("inf"), None
for epoch in range(8):
    model.train()
    for _ in range(15):
        x = torch.randn(32, 8)
        loss = nn.functional.mse_loss(model(x), torch.tanh(x @ true))
        opt.zero_grad()
        loss.backward()
        opt.step()
    score = check(model, held, held_y)
    if score < best:
        best, kept = score, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch} held out {score:.4f}")
model.train()
model.load_state_dict(kept)
print(f"best {best:.4f} loaded {check(model, held, held_y):.4f}")
