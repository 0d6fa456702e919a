"""How objects are called and described, all in the original's wording."""
