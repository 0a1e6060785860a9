# ran to its end, exit code 0
thread = threading.Thread(target=lambda: sys.exit(3))
thread.start(); thread.join()
