"""Problems that are generated from stories."""
