# ran to its end, exit code 0
# gap: a process was forked
child = os.fork()
if child == 0:
    torch.ones(2) @ torch.ones(3)
if child: print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
