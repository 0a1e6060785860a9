import sys, torch
class M(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        sys.exit(5)
M()(torch.ones(1))
