"""python -m voile.cli"""

from voile.cli import main

main()
