"""Search for densities, noise and variances of generative models that do not belong together."""
