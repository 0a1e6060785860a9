import torch
x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(torch.sin, x), torch.autograd.gradgradcheck(torch.exp, x))
print(torch.autograd.gradcheck(torch.tanh, x, check_forward_ad=True, check_batched_grad=True))
