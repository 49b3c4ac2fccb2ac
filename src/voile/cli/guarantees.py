"""Commands on promises: convert one into another, list what follows from a release."""
