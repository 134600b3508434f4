"""Plugins for Larder."""
