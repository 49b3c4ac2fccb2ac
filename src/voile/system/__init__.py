"""What the operating system does, in one way for all: locks, signals, names, rights, limits.

here.py            the functions, as this system has them: import `here as system`
posix.py           for Linux and macOS
windows.py         for Windows, with the same functions
windows_memory.py  a bound of memory there
names.py           what Windows takes for something else than a file

Nobody else asks which system it is, or names what only one of them has.
"""
