"""The documentation site: pages that are generated from the code, and checks of all pages.

Pages on environments, recipes, commands and the interface are made when the site is built, so that
a new row of a registry has its page without another line anywhere. ``docs/hooks.py`` gives them to
mkdocs.
"""
