"""Smoke test of an adapter, before its implementation is tested."""
