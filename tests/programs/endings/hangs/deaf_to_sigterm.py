# was stopped at its time limit, exit code -9
# --timeout 12
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
