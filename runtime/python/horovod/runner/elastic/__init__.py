"""Jobs whose hosts come and go."""
