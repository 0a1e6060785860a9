"""Search for losses that compare, reduce or multiply other values than they are meant to."""
