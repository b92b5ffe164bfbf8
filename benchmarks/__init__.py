"""Speed and memory of one training step; see README.md in this folder."""
