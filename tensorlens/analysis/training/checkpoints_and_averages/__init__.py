"""Search for kept states, averages and copies that are not what they are taken for."""
