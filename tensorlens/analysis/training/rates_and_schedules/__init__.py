"""Search for learning rates and schedules without effect."""
