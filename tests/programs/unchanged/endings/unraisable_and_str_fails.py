import torch
class Bad(Exception):
    def __repr__(self): raise ValueError
    __str__ = __repr__
def f():
    raise Bad
f()
