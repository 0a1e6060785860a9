# was stopped at its time limit by SIGKILL
# --timeout 12
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
