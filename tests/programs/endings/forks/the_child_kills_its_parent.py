# was killed by SIGKILL
# gap: a process was forked
child = os.fork()
if child == 0:
    time.sleep(1)
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
os.waitpid(child, 0)
