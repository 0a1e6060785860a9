# was interrupted, exit code 130
raise KeyboardInterrupt
