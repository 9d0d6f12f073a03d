"""What every other package may use: files, random numbers, checked arguments, versions."""
