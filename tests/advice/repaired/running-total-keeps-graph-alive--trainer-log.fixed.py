"""A trainer logs what each step returns."""
import torch
from torch import nn


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters())
        self.log = {"loss": [], "norm": []}

    def step(self, x):
        out = self.net(x)
        loss = (out - x).abs().mean()  # role: graph_built_here
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log["loss"].append(loss.detach())  # role: shared_here
        self.log["norm"].append(float(sum(p.grad.norm() for p in self.net.parameters())))

    def summary(self):
        mean = sum(self.log["loss"]) / len(self.log["loss"])
        self.log = {"loss": [], "norm": []}
        return mean.item()


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 5)))
for epoch in range(2):
    for batch in torch.randn(60, 5).split(6):
        trainer.step(batch)
    print(trainer.summary() > 0)
