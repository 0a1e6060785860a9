"""Search for pairs of rows that a contrastive loss or a hinge compares in the wrong way."""
