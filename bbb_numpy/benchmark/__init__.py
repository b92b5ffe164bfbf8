"""Every inference method on the standard splits of the UCI sets: resumable, on any executor."""
