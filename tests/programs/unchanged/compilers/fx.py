import torch
from torch import fx
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 2)
    def forward(self, x):
        return torch.relu(self.line(x)) + x.sum(dim=0)
g = fx.symbolic_trace(Net())
print(g.graph)
print(g.code)
g.graph.lint()
print(g(torch.zeros(1, 2)).shape)
from torch.fx.experimental.proxy_tensor import make_fx
print(make_fx(lambda x: (x * 2).sin())(torch.ones(2)).code)
