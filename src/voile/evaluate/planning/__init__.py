"""What a release would be like, and what is possible, before anything is published."""
