"""What is measured of a program to see that the lens changes nothing of it."""
