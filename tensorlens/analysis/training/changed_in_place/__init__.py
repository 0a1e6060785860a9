"""Search for data and attributes that a line changes while others still use them."""
