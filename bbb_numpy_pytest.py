"""The plugin of pytest under its former name: `exactgrad.pytest` is what it is called now."""

from exactgrad.pytest import assert_proved

__all__ = ["assert_proved"]
