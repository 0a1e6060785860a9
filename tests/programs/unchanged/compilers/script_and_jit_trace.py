import warnings
warnings.simplefilter("ignore", DeprecationWarning)
warnings.simplefilter("ignore", FutureWarning)
import torch
def f(x):
    y = x * 2
    if y.sum() > 3:
        y = y + 1
    return y
try:
    s = torch.jit.script(f)
    print(s.code)
    print(s(torch.ones(2)))
except Exception as error:
    print(type(error).__name__, str(error)[:200])
t = torch.jit.trace(lambda x: x.sin() * 2, torch.ones(2))
print(t.graph)
print(t(torch.zeros(2)))
