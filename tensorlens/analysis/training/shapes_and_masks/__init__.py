"""Search for shapes, masks, rows and positions that mix what belongs apart."""
