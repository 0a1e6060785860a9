"""expect: checkpoint-different-number-saved

Every few steps the model is validated between the forward and the backward pass: a checkpoint runs again without dropout.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width))
            for _ in range(depth)
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)  # role: called_here
        return x


def validate(model, batch):
    model.eval()  # role: state_changed_here
    with torch.no_grad():
        return model(batch).pow(2).mean().item()


torch.manual_seed(4)
model = Encoder(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    model.train()
    batch = torch.randn(3, 4)
    loss = model(batch).pow(2).mean()
    if step % 3 == 2:
        print(step, round(validate(model, batch), 4))
    model.train()
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
