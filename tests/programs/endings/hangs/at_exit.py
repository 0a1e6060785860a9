# was stopped at its time limit by SIGTERM
# --timeout 12
import atexit
atexit.register(time.sleep, 60)
