import weakref, torch
order = []
def track(name):
    t = torch.ones(2)
    weakref.finalize(t, order.append, name)
    return t
a, b = track("a"), track("b")
def f():
    c = track("c")
    return c + a
r = f()
print(order)
weakref.finalize(r, order.append, "r")
r = r + b
print(order)
del a
print(order)
