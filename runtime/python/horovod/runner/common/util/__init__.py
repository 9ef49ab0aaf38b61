"""Helpers that the launcher and its workers share."""
