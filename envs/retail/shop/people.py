"""Names and places of the generated customers."""

from __future__ import annotations

from itertools import product


def _combine(first: str, second: str, between: str = "") -> tuple[str, ...]:
    """Join every word of the first list with every word of the second."""
    return tuple(a + between + b for a, b in product(first.split(), second.split()))


_FIRST = """
Al An Bel Cor Dar El Fen Gal Hal Iv Jor Kel Lor Mar Nor Or Per Ros Sel Tam
"""
_LAST = """
Ash Bar Brook Cald Dun Elm Far Gar Harp Ing Kirk Lang Mar Nor Oak Pem Red Stan Thorn West
"""
_STREETS = """
Acorn Amber Birch Canal Cedar Chapel Clover Copper Dover Easel Falcon Fern Garnet Harbor Heron
Iris Juniper Kestrel Larch Lantern Linden Maple Mill Orchard Pebble Quarry Raven Saddle Spruce
Thistle Tulip Walnut
"""
_CITIES = """
Albany:NY:122 Atlanta:GA:303 Austin:TX:787 Baltimore:MD:212 Boise:ID:837 Boston:MA:021
Buffalo:NY:142 Chicago:IL:606 Cleveland:OH:441 Columbus:OH:432 Dallas:TX:752 Denver:CO:802
Detroit:MI:482 Eugene:OR:974 Fresno:CA:937 Houston:TX:770 Lincoln:NE:685 Madison:WI:537
Memphis:TN:381 Miami:FL:331 Mobile:AL:366 Nashville:TN:372 Newark:NJ:071 Omaha:NE:681
Orlando:FL:328 Phoenix:AZ:850 Portland:OR:972 Raleigh:NC:276 Reno:NV:895 Richmond:VA:232
Salem:OR:973 Seattle:WA:981 Spokane:WA:992 Tampa:FL:336 Tucson:AZ:857 Tulsa:OK:741
"""
_MICRO_FIRST = "Ann Ben Cat Dan Eva Fay Gus Hal Ida Jon Kim Leo Mia Ned Ola Pam"
_MICRO_LAST = "Bell Cole Dean Ford Gray Hill King Lane"
FIRST_NAMES = {
    "full": _combine(_FIRST, "a ia en ette in is o ora us yn"),
    "micro": tuple(_MICRO_FIRST.split()),
}
"""Given names by the size of the shop: 200 in the full one."""
LAST_NAMES = {
    "full": _combine(_LAST, "berg by dale ford grove ham ley man ton wood"),
    "micro": tuple(_MICRO_LAST.split()),
}
"""Family names by the size of the shop: 200 in the full one."""
STREETS = _combine(_STREETS, "Street Road Avenue Lane Drive", " ")
CITIES = tuple(tuple(city.split(":")) for city in _CITIES.split())
"""Cities with their state and the beginning of their zip codes."""
