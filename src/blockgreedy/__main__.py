"""``python -m blockgreedy`` is the command ``blockgreedy``."""

from blockgreedy.cli import main

main()
