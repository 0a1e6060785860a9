# ended with BaseExceptionGroup, exit code 1
raise BaseExceptionGroup('all', [KeyboardInterrupt(), ValueError(1)])
