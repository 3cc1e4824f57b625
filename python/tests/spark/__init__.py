"""Tests that need Spark. The folder is a package, so executors can import the functions that tests pass to them."""
