"""Where the rows come from and how they are scanned."""
