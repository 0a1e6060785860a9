# ended with RecursionError, exit code 1
def f(x): return f(x + 1)
f(x)
