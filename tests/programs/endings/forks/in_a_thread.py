# ran to its end, exit code 0
# gap: a process was forked
thread = threading.Thread(target=lambda: os.waitpid(os.fork() or os._exit(3), 0))
thread.start(); thread.join()
