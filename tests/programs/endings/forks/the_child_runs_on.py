# ran to its end, exit code 0
# gap: a process was forked
if os.fork() == 0:
    time.sleep(1)
    print((x * 3).sum().item(), flush=True)
    os._exit(0)
