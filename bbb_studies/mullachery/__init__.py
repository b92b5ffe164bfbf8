"""The experiments of Mullachery et al.: coin, Occam's razor, Powerball, income tax, S&P 500."""
