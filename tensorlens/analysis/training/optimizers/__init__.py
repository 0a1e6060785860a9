"""Search for optimizers that lose parameters or their state."""
