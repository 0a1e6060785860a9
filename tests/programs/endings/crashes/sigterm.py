# was killed by SIGTERM
time.sleep(1)
os.kill(os.getpid(), signal.SIGTERM)
