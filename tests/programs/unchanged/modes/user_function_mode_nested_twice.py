import torch
from torch.overrides import TorchFunctionMode, _len_torch_function_stack

class Add(TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.name = name
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ones:
            print(self.name)
            return result + 1
        return result

with Add("outer"):
    with Add("inner"):
        print(torch.ones(2))
    try:
        with Add("third"):
            torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        print(error)
print(torch.ones(2))
