"""The code that the launcher and its workers share."""
