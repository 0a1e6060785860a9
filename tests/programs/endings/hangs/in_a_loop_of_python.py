# was stopped at its time limit by SIGTERM
# --timeout 12
while True: pass
