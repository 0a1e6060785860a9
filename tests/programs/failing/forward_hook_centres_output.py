"""expect: saved-tensor-modified-inplace

A forward hook, registered far away, centres the activations in place.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(5, 6)
        self.activation = nn.Sigmoid()
        self.classifier = nn.Linear(6, 3)

    def forward(self, x):
        h = self.activation(self.features(x))  # role: saved_here
        return self.classifier(h)


class Statistics:
    def __init__(self, model, kind):
        self.means = {}
        for name, module in model.named_modules():
            if isinstance(module, kind):
                module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def centre(module, inputs, output):
            mean = output.mean(0)
            self.means[name] = mean.detach()
            output.sub_(mean)  # role: modified_here

        return centre


torch.manual_seed(15)
net = Net()
statistics = Statistics(net, nn.Sigmoid)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = nn.functional.cross_entropy(net(torch.randn(4, 5)), torch.tensor([0, 1, 2, 0]))
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
