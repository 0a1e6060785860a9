# ran to its end, exit code 0
def f():
    try:
        yield x * 2
    finally:
        raise KeyError('late')
g = f(); next(g); del g
