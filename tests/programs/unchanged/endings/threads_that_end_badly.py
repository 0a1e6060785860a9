import sys, threading, torch
class Worse(BaseException):
    pass
def by(error):
    torch.ones(2)
    raise error
for error in (Worse("worse"), SystemExit(3), KeyboardInterrupt(), ExceptionGroup("group", [ValueError(1), Worse and TypeError(2)])):
    thread = threading.Thread(target=by, args=(error,), name="named")
    thread.start(); thread.join()
class Dies:
    def __del__(self):
        torch.ones(2) @ torch.ones(3)
del_me = Dies()
del del_me
x = torch.ones(2, requires_grad=True)
x.register_hook(lambda gradient: by(Worse("in a hook")))
try:
    (x * 2).sum().backward()
except Worse as error:
    print("caught", error, error.__traceback__.tb_frame.f_code.co_name)
def generator():
    try:
        yield torch.ones(1)
    finally:
        torch.zeros(2)
        raise Worse("in a generator's end")
g = generator()
next(g)
del g
raise BaseExceptionGroup("all", [Worse("a"), ExceptionGroup("b", [RuntimeError("c")])])
