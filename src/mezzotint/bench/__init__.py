"""Measurements: each number the project quotes is printed by a command in here."""
