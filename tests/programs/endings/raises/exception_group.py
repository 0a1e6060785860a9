# ended with ExceptionGroup, exit code 1
raise ExceptionGroup('two', [ValueError(1), ExceptionGroup('b', [KeyError(2)])])
