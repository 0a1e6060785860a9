import threading, torch
from concurrent.futures import ThreadPoolExecutor
local = threading.local()
def work(n):
    x = torch.ones(3, requires_grad=True)
    for _ in range(20):
        (x * n).sum().backward()
    return x.grad.tolist(), torch.is_grad_enabled(), threading.current_thread().name.split("-")[0]
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, range(6))))
def fails():
    torch.ones(2) @ torch.ones(3)
threading.excepthook = lambda args: print("hook", args.exc_type.__name__, args.exc_value)
t = threading.Thread(target=fails)
t.start(); t.join()
class T(threading.Thread):
    def run(self):
        self.value = torch.ones(2).sum().item()
t = T(daemon=True); t.start(); t.join()
print(t.value, threading.active_count(), [t.name for t in threading.enumerate()])
timer = threading.Timer(0.01, lambda: print("timer", torch.ones(1)))
timer.start(); timer.join()
import _thread
lock = threading.Lock(); lock.acquire()
_thread.start_new_thread(lambda: (print("bare", torch.ones(1) + 1), lock.release()), ())
lock.acquire()
