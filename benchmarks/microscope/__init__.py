"""The credit microscope: what a recipe's credit is worth, turn by turn, against the truth."""
