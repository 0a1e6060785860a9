import contextlib, torch
def losses(x):
    with torch.no_grad():
        yield (x * 2).requires_grad
    try:
        yield (x * 2).requires_grad
    finally:
        print("closed", torch.is_grad_enabled())
x = torch.ones(2, requires_grad=True)
g = losses(x)
print(next(g), torch.is_grad_enabled())
print(next(g), torch.is_grad_enabled())
g.close()
@contextlib.contextmanager
def frozen(module):
    module.requires_grad_(False)
    yield module
    module.requires_grad_(True)
net = torch.nn.Linear(2, 1)
with frozen(net) as n, contextlib.suppress(RuntimeError):
    n(torch.ones(2)).backward()
@torch.no_grad()
def evaluate():
    for i in range(2):
        yield (x * i).requires_grad
print(list(evaluate()), net.weight.requires_grad)
with contextlib.ExitStack() as stack:
    stack.enter_context(torch.inference_mode())
    stack.callback(print, "left")
    print(torch.ones(1).is_inference())
