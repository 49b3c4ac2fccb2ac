"""Models of a table from counts alone: decision trees and association rules."""
