from blockgreedy.cli import main

main()
