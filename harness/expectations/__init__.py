"""What outcome is expected where, and why; held against records in both directions. Pure."""
