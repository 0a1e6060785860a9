import os, torch
x = torch.ones(2, requires_grad=True)
read, write = os.pipe()
child = os.fork()
if child == 0:
    (x * 3).sum().backward()
    os.write(write, repr(x.grad.tolist()).encode())
    os._exit(3)
_, status = os.waitpid(child, 0)
print(os.read(read, 100), os.waitstatus_to_exitcode(status), x.grad)
