"""Renders findings for programs that show them beside the code: CI services and editors."""
