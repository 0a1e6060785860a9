import runpy, sys, tempfile, os, torch
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "inner.py")
    with open(path, "w") as file:
        file.write("import torch\nx = torch.ones(2, requires_grad=True)\n(x * 2).sum().backward()\nprint(__name__, x.grad)\n")
    print(sorted(k for k in runpy.run_path(path, run_name="__main__") if not k.startswith("__")))
exec("y = torch.ones(2) * 3\nprint(y)")
print(eval("torch.ones(1) + 1"))
print(__name__, sys.modules["__main__"].torch is torch, sorted(k for k in globals() if k.startswith("__")))
print(sys.argv[1:], __file__ == os.path.abspath(sys.argv[0]), __builtins__.__name__)
