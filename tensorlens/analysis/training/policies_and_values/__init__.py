"""Search for policies, values, returns and episodes that a loss takes otherwise than the method says."""
