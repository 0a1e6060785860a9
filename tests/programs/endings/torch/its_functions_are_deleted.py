# ended with AttributeError, exit code 1
del torch.ones, torch.Tensor.backward
torch.ones(1)
