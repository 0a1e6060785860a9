# was killed by SIGBUS
time.sleep(1)
os.kill(os.getpid(), signal.SIGBUS)
