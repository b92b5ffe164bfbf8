"""The numbers of a proof: residues in finite fields, and sixty decimal digits."""
