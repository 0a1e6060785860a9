"""expect: leaf-modified-inplace

An initialisation helper shrinks every parameter where gradients are recorded.
"""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(10, width)  # role: leaf_made_here
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, words):
        x = self.embed(words)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x.mean(1)


def initialise(model, gain=0.5):
    """Smaller weights make the residual branches quiet at first."""
    with torch.no_grad():
        for layer in model.layers:
            nn.init.orthogonal_(layer.weight)
    for name, parameter in sorted(model.named_parameters()):
        with torch.no_grad():
            parameter *= gain  # role: rejected_here
    return model


torch.manual_seed(35)
encoder = initialise(Encoder(4))
print(encoder(torch.tensor([[1, 2, 3]])).shape)
