"""The Spark engine on Sail, which a wheel brings, and on Apache Spark, where there is Java."""
