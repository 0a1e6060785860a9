# ended with KeyError, exit code 1
def own(*_, **__): raise KeyError('own')
torch.autograd.backward = own
y.sum().backward()
