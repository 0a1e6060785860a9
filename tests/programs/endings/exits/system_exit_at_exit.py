# ran to its end, exit code 0
import atexit
atexit.register(sys.exit, 4)
