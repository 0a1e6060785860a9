import os, shutil, sys, tempfile, torch
if os.path.basename(__file__) != "copy.py":
    folder = tempfile.mkdtemp()
    path = shutil.copy(__file__, os.path.join(folder, "copy.py"))
    os.chdir(folder)
    code = open("copy.py").read()
    names = {"__name__": "__main__", "__file__": path}
    exec(compile(code, path, "exec"), names)
    os.chdir("/")
    print(os.path.exists(folder), names["x"].grad)
else:
    os.remove(__file__)
    os.rmdir(os.getcwd())
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
