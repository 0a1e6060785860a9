# was killed by SIGILL
time.sleep(1)
os.kill(os.getpid(), signal.SIGILL)
