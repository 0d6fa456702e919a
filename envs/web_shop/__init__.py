"""WebShop-v0: buy what an instruction describes in a shop of text pages."""
