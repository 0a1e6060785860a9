import torch
class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.T + b
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.T @ x, g.sum(0)  # role: returned_here
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(3, 4)); b = torch.nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([w, b], lr=0.1)
for step in range(3):
    loss = Affine.apply(torch.randn(8, 4), w, b).square().mean()
    opt.zero_grad()
    loss.backward()  # role: needed_here
    opt.step()
