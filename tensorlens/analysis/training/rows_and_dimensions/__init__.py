"""Search for rows and dimensions that a reshape, an index or an order mixes."""
