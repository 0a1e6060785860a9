# was killed by SIGHUP
time.sleep(1)
os.kill(os.getpid(), signal.SIGHUP)
