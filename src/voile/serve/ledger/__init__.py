"""The durable record of what was answered, to whom, and who may still ask how much."""
