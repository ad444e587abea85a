"""The tests: a folder for each kind of them (docs/develop/testing.md), and in `kit/` what they have in common."""
