"""Two tasks share a trunk; each loss is weighted by a learned variance; three parameter groups and one-cycle rates."""

import torch
from torch import nn


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 32), nn.ReLU(inplace=True), nn.LayerNorm(32))
        self.depth = nn.Linear(32, 1)
        self.label = nn.Linear(32, 4)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.depth(h).squeeze(-1), self.label(h)


torch.manual_seed(1)
x = torch.randn(128, 6)
depth = x[:, 0] * 2 + x[:, 1]
label = (x[:, 2:4] > 0).long() @ torch.tensor([2, 1])
model = TwoTasks()
optimizer = torch.optim.AdamW(
    [
        {"params": model.trunk.parameters(), "lr": 1e-3},
        {"params": [*model.depth.parameters(), *model.label.parameters()], "lr": 3e-3},
        {"params": [model.log_variance], "weight_decay": 0.0},
    ],
    lr=1e-2,
)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1e-2, 2e-2, 1e-2], total_steps=40)
curves = {"depth": [], "label": []}
for step in range(40):
    rows = torch.randint(128, (32,))
    predicted, scores = model(x[rows])
    losses = torch.stack(
        [
            nn.functional.mse_loss(predicted, depth[rows]),
            nn.functional.cross_entropy(scores, label[rows], label_smoothing=0.1),
        ]
    )
    loss = (losses * (-model.log_variance).exp() + model.log_variance).sum()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    schedule.step()
    for name, value in zip(curves, losses.tolist()):
        curves[name].append(value)
print(curves["depth"][-1] < curves["depth"][0], len(curves["label"]))
