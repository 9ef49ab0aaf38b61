"""Helpers of launchers."""
