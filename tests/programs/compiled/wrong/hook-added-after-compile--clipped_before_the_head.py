"""A pre-hook clips the gradient in front of the head, once a warm-up step has shown how large it gets."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 10), nn.ReLU())
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        return self.head(self.body(x))


def clip(module, grad_output):
    return tuple(each.clamp(-1e-3, 1e-3) for each in grad_output)


torch.manual_seed(1)
model = Classifier()
fast = torch.compile(model, backend="aot_eager")  # role: compiled_here
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data, labels = torch.randn(24, 5), torch.randint(3, (24,))
nn.functional.cross_entropy(fast(data), labels).backward()  # role: called_here
optimizer.step()
model.head.register_full_backward_pre_hook(clip)  # role: hook_registered_here
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(fast(data), labels)
    loss.backward()  # role: needed_here
    optimizer.step()
