"""One folder for each kind of release, and what all kinds share."""
