import torch
from torch.utils.flop_counter import FlopCounterMode

net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
with FlopCounterMode(display=False) as counter:
    net(torch.ones(2, 4)).sum().backward()
print(counter.get_total_flops())
