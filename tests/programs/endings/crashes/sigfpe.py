# was killed by SIGFPE
time.sleep(1)
os.kill(os.getpid(), signal.SIGFPE)
