# ended itself, exit code 0
# gap: a process was forked
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
print((x * 3).sum().item(), flush=True)
