"""Services that processes of different jobs share."""
