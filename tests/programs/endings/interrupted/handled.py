# ran to its end, exit code 0
# Ctrl-C after: ready
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append(1))
print('ready', flush=True)
while not caught: x + y
print('goes on', x.sum().item())
