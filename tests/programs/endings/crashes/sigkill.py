# was killed by SIGKILL
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)
