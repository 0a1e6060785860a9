import os, signal, torch
def handler(number, frame):
    print("got", number, frame.f_code.co_name, torch.ones(1) + 1)
signal.signal(signal.SIGUSR1, handler)
def work():
    x = torch.ones(2)
    os.kill(os.getpid(), signal.SIGUSR1)
    return x * 2
print(work())
class Late(Exception): pass
def alarm(number, frame):
    raise Late
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    while True:
        torch.ones(100).sum()
except Late as error:
    print("late", error.__traceback__.tb_frame.f_code.co_name)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGTERM))
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
