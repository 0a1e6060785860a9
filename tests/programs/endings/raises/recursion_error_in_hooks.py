# ended with RecursionError, exit code 1
def deeper(g):
    return deeper(g * 1)
y.register_hook(deeper)
y.sum().backward()
