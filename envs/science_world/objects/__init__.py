"""What objects are: materials, kinds, and the records that some kinds carry."""
