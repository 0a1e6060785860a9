import torch
a = torch.ones(3)
for _ in range(3):
    out = torch.ones(2, 3)
    torch.mul(a, a, out=out)
    torch.ones(2, 3).T, a.T
for function in (torch.add, torch.sub, torch.div):
    function(a, a, out=torch.ones(2))
