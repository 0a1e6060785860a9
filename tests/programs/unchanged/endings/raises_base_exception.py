import torch
class Odd(BaseException):
    def __str__(self): raise RuntimeError("no text for you")
x = torch.ones(2) * 2
raise Odd
