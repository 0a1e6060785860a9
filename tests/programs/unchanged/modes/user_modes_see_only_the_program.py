import copy, io, threading
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))
class Kernels(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.kept = x
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
a = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
b = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
def saved():
    stream = io.BytesIO()
    torch.save({"a": a.detach()}, stream)
    stream.seek(0)
    torch.load(stream)
def threaded():
    thread = threading.Thread(target=lambda: nn.utils.clip_grad_norm_([b], 0.5))
    thread.start()
    thread.join()
def checkpointed():
    torch.utils.checkpoint.checkpoint(torch.sin, a, use_reentrant=True).sum().backward()
    torch.utils.checkpoint.checkpoint(torch.sin, a, use_reentrant=False).sum().backward()
def switched():
    with torch.no_grad(), torch.inference_mode():
        a * 2
def placed():
    net = nn.Linear(3, 3)
    net.weight = nn.Parameter(net.weight.detach())
    net.weight.data = torch.ones(3, 3)
    net.to(torch.float64)
    torch.nn.LazyLinear(2)(a)
def refused():
    y = Double.apply(a).sum()
    y.backward()
    y.backward()
def optimized():
    optimizer = torch.optim.Adam([a], lr=0.1)
    optimizer.add_param_group({"params": [b]})
    (a * b).sum().backward()
    optimizer.step()
    torch.optim.SGD([a * 2], lr=0.1)
def hooked():
    y = a * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    a.register_post_accumulate_grad_hook(lambda p: None).remove()
    y.sum().backward()
WORK = {
    "saved": saved, "threaded": threaded, "checkpointed": checkpointed, "switched": switched, "placed": placed,
    "refused": refused, "optimized": optimized, "hooked": hooked,
    "numpy": lambda: torch.from_numpy(a.detach().numpy()).add_(1),
    "set": lambda: torch.ones(3).set_(torch.zeros(2)),
    "swap": lambda: torch.utils.swap_tensors(torch.ones(2), torch.ones(3)),
    "copy": lambda: copy.deepcopy(nn.Linear(2, 2)).load_state_dict(nn.Linear(2, 2).state_dict()),
    "functional": lambda: torch.func.vmap(torch.func.grad(lambda v: v.sin()))(a.detach()),
    "data": lambda: setattr(nn.Parameter(b.detach()), "data", b.data * 2),
    "grad": lambda: torch.autograd.grad(torch.autograd.grad(a.pow(3).sum(), a, create_graph=True)[0].sum(), a),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))(a),
}
for kind in (Functions, Kernels):
    for name, work in WORK.items():
        work() if name == "optimized" else None  # what torch imports on first use
        with kind() as mode:
            try:
                work()
            except Exception as error:
                print(type(error).__name__, error)
        print(name, len(mode.seen), mode.seen)
