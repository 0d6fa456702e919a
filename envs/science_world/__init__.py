"""ScienceWorld in pure Python: a house of ten places whose things heat, melt, burn and grow.

How the world is kept (``world.py``): a :class:`~.world.World` is a set of columns. An object is an
int handle ``o``; ``world.name[o]``, ``world.kind[o]`` (a read-only :class:`~.kinds.Kind`),
``world.parent[o]``, ``world.kids[o]`` (tuple, in creation order), ``world.heat[o]`` (Celsius),
``world.state[o]`` (``"solid"``, ``"liquid"``, ``"gas"`` or empty), ``world.material[o]``
(:class:`~.materials.Material` or None), ``world.open[o]``, ``world.on[o]``, ``world.broken[o]``,
``world.burning[o]``, ``world.burnt[o]``, ``world.note[o]`` and ``world.life[o]`` (immutable
records of ``records.py``: replace them, never change them). ``NONE`` (-1) is no object.

Making and placing::

    world = build_house(random)              # house.py; ``random`` is a JavaRandom seeded with v
    cup = world.make("tin cup", early=True)  # by kind; early: made with the task, before the house
    world.put(cup, world.places["kitchen"])  # also moves; ``take_out`` and ``delete`` remove
    world.make("flower pot", name="flower pot 3", early=True)
    world.make("answer box", name="red box", early=True)
    add_book(world, room, 5, early=True)     # house.py; also ``add_basin``
    world.note[recipe] = Text(title, contents)          # records.py, for documents
    world.note[plane] = Slope(45.0, "cloth", "")         # angle, surface material, letter
    world.note[plant] = (("plant height", 0, 1), ...)    # genes: trait, two alleles, 0 dominant
    world.set_stage(plant_or_animal, "adult"); world.stage(o)
    world.set_material(o, unknown_substance("B"), rename=True)   # materials.py
    world.set_material(o, replace(world.material[o], conducts=True))

Names of kinds stand in ``kinds_things.py``, ``kinds_devices.py`` and ``kinds_living.py`` (for
instance ``"wood table"``, ``"red light bulb"``, ``"red paint"``, ``"apple tree"``, ``"pea plant"``,
``"unknown B plant"``, ``"giant tortoise"``, ``"unknown electrical substance"``). ``kind.tags`` are
groups: ``"place"``, ``"plant"``, ``"animal"``, ``"living"``, ``"food"``, ``"substance"``,
``"paint"``, ``"answer"``, ``"source"`` (of voltage), ``"bulb"``, ``"wire"``, ``"document"``.

Looking: ``world.inside(o)`` (all depths), ``world.named(name, within)``, ``world.holders(o)``
(containers upwards), ``world.place_of(o)``, ``world.here()``, ``world.agent``,
``world.inventory``, ``world.places``, ``all_inside(world, room)`` (with hidden terminals, the list
that the original draws containers from). Terminals are handles of their own: ``terminal(o, 0)`` is
terminal 1 or the anode; ``world.wires`` maps a terminal handle to the connected one.
``wording.full_name(world, o)`` is the descriptive name, ``wording.describe`` the text.

A task sets ``world.simple`` (names of simplifications) and ``world.goals`` (see
:class:`~.world.Goals`). Rooms without the agent may lag behind: ``physics.quiet.settle(world)``
brings all of them up to date before something looks into them.
"""
