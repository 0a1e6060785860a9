# ended itself, exit code 5
signal.signal(signal.SIGUSR1, lambda *_: os._exit(5))
os.kill(os.getpid(), signal.SIGUSR1)
