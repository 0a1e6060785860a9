# was killed by SIGABRT
time.sleep(1)
os.abort()
