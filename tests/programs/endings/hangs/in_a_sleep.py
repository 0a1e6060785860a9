# was stopped at its time limit by SIGTERM
# --timeout 12
time.sleep(60)
