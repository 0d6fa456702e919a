"""ScienceWorld in pure Python: a house of ten places whose things heat, melt, burn and grow.

How the house is kept (``house/state.py``): a :class:`~.house.state.HouseState` is a set of columns.
An object is an int handle ``o``; ``house.name[o]``, ``house.kind[o]`` (a read-only
:class:`~.objects.kinds.Kind`), ``house.parent[o]``, ``house.kids[o]`` (tuple, in creation order),
``house.heat[o]`` (Celsius), ``house.state[o]`` (``"solid"``, ``"liquid"``, ``"gas"`` or empty),
``house.material[o]`` (:class:`~.objects.materials.Material` or None), ``house.open[o]``,
``house.on[o]``, ``house.broken[o]``, ``house.burning[o]``, ``house.burnt[o]``, ``house.note[o]``
and ``house.life[o]`` (immutable records of ``objects/records.py``: replace them, never change
them). ``NONE`` (-1) is no object.

Making and placing::

    house = build_house(random)              # house/build.py; JavaRandom seeded with the variation
    cup = house.make("tin cup", early=True)  # by kind; early: made with the task, before the house
    house.put(cup, house.places["kitchen"])  # also moves; ``take_out`` and ``delete`` remove
    house.make("flower pot", name="flower pot 3", early=True)
    house.make("answer box", name="red box", early=True)
    add_book(house, room, 5, early=True)     # house/build.py; also ``add_basin``
    house.note[recipe] = Text(title, contents)           # for documents
    house.note[plane] = Slope(45.0, "cloth", "")         # angle, surface material, letter
    house.note[plant] = (("plant height", 0, 1), ...)    # genes: trait, two alleles, 0 dominant
    house.set_stage(plant_or_animal, "adult"); house.get_stage(o)
    house.set_material(o, make_unknown_substance("B"), rename=True)  # objects/materials.py
    house.set_material(o, replace(house.material[o], conducts=True))

Names of kinds stand in ``objects/kinds.py`` (for instance ``"wood table"``, ``"red light bulb"``,
``"red paint"``, ``"apple tree"``, ``"pea plant"``, ``"unknown B plant"``, ``"giant tortoise"``,
``"unknown electrical substance"``). ``kind.tags`` are groups: ``"place"``, ``"plant"``,
``"animal"``, ``"living"``, ``"food"``, ``"substance"``, ``"paint"``, ``"answer"``, ``"source"`` (of
voltage), ``"bulb"``, ``"wire"``, ``"document"``.

Looking: ``house.walk_inside(o)`` (all depths), ``house.find_named(name, within)``,
``house.walk_holders(o)`` (containers upwards), ``house.find_place(o)``,
``house.get_agent_place()``, ``house.agent``,
``house.inventory``, ``house.places``, ``list_all_inside(house, room)`` (with hidden terminals, the
list that the original draws containers from). Terminals are handles of their own:
``get_terminal(o, 0)`` is terminal 1 or the anode; ``house.wires`` maps a terminal handle to the
connected one. What an object is called in texts stands in ``text/names.py``, all names that it
answers to in ``text/references.py``, and what is seen of it in ``text/descriptions.py``.

A task sets ``house.simple`` (names of simplifications) and ``house.goals`` (see
:class:`~.house.state.GoalTracker`). Rooms without the agent may lag behind:
``physics.ticking.settle(house)`` brings all of them up to date before something looks into them.
"""
