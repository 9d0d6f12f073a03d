"""Public sets by name: downloaded once, to a cache folder, resumed where they broke off, and checked."""
