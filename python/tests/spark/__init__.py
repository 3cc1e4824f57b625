"""Tests of what needs Spark: a package, so that executors can import what tests hand them."""
