import gc, resource, torch
def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
x = torch.ones(4, requires_grad=True)
y = (x * 2).exp()
resource.setrlimit(resource.RLIMIT_AS, (used() + (256 << 20), resource.RLIM_INFINITY))
for ask in (lambda: bytearray(1 << 33), lambda: torch.empty(1 << 33), lambda: x.repeat(1 << 31), lambda: [0] * (1 << 31)):
    try:
        ask()
    except (MemoryError, RuntimeError) as error:
        print(type(error).__name__, str(error)[:80])
held = []
try:
    while True:
        held.append(torch.ones(1 << 22))
except RuntimeError as error:
    print(type(error).__name__, len(held) > 5)
held.clear()
y.sum().backward()
print(x.grad)
bytes(1 << 34)
