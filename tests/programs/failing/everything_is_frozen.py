"""expect: optimizer-empty-parameter-list

Fine-tuning: everything whose name holds "layer" is frozen, and every name does; the optimizer gets nothing.
"""

import torch
from torch import nn


def build():
    return nn.ModuleDict({f"layer{i}": nn.Linear(4, 4) for i in range(3)})


def freeze(model, *words):
    for name, p in model.named_parameters():
        if any(word in name for word in words):
            p.requires_grad = False


torch.manual_seed(7)
model = build()
freeze(model, "layer")
trainable = [p for p in model.parameters() if p.requires_grad]  # role: value_made_here
print(len(list(model.parameters())), "parameters")
groups = dict(lr=1e-3, weight_decay=0.1)
optimizer = torch.optim.AdamW(trainable, **groups)  # role: optimizer_made_here
for step in range(2):
    x = torch.randn(2, 4)
    for layer in model.values():
        x = layer(x)
    x.sum().backward()
    optimizer.step()
