"""Where the iterations run: ``reference`` (NumPy, the executable specification) and ``cpu`` (the C++ core)."""
