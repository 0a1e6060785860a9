import inspect, sys, traceback, torch
def who():
    return [f.function for f in inspect.stack()][:2]
class M(torch.nn.Module):
    def forward(self, x):
        self.seen = [f.name for f in traceback.extract_stack()][-3:]
        return x * 2
m = M()
m(torch.ones(1))
print(who(), m.seen)
x = torch.ones(2, requires_grad=True)
x.register_hook(lambda g: print([f.name for f in traceback.extract_stack()][-2:]))
(x * 2).sum().backward()
print(inspect.signature(torch.nn.Linear), inspect.getsource(who).splitlines()[0])
print(inspect.signature(torch.autograd.Function.apply), torch.ones.__name__, callable(torch.Tensor.add))
print(sys.getrecursionlimit(), len(inspect.stack()))
