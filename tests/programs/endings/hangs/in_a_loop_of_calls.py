# was stopped at its time limit, exit code -15
# --timeout 12
while True: x + y
