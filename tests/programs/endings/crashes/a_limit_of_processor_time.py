# was killed by SIGXCPU
time.sleep(1)
import resource
resource.setrlimit(resource.RLIMIT_CPU, (1 + int(time.process_time()), -1))
while True: pass
