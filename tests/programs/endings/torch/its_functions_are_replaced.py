# ended with ZeroDivisionError, exit code 1
torch.Tensor.mul = torch.Tensor.__mul__ = lambda *_: 1 / 0
x * 2
