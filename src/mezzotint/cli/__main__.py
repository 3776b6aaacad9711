from mezzotint.cli import main

main()
