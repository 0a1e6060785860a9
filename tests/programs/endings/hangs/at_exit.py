# was stopped at its time limit, exit code -15
# --timeout 12
import atexit
atexit.register(time.sleep, 60)
