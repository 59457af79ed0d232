"""Reservations: request one, find it, change it, follow it."""
