# ran to its end, exit code 0
# gap: a process was forked
child = os.fork()
if child:
    os.waitpid(child, 0)
print(child == 0, (x * 3).sum().item(), flush=True)
