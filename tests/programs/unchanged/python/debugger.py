import io, pdb, sys, torch
def f(x):
    y = x * 2
    return y
class Here(pdb.Pdb):
    pass
commands = io.StringIO("n\nn\np y\nw\nc\n")
out = io.StringIO()
d = Here(stdin=commands, stdout=out, nosigint=True)
d.use_rawinput = False
try:
    d.runcall(f, torch.ones(2))
except Exception as error:
    print(type(error), error)
print([line for line in out.getvalue().splitlines() if "tensor(" in line or "return y" in line])
