# was stopped at its time limit, exit code -15
# --timeout 12
time.sleep(60)
