"""Filler words and parts of coined names of the full world; none is part of a concept's name."""

ADJECTIVES = """abundant amiable austere balmy bleak bold brisk candid cheerful civil clever cogent
comely compact copious cordial courtly crude curious daring decent deft delicate dense diligent
docile durable eager earnest elegant eminent exotic faint famous fertile festive fervent fickle
firm fluent fond formal frank fresh genial gracious grand hardy hasty hearty honest humble
idle jolly keen kindly lavish lively lofty loyal lucid lush mellow merry modest noble
obscure orderly ornate patient peculiar placid pleasant polite potent proud prudent quaint
quiet ready refined resolute rugged serene sincere sober solemn splendid stately stout sturdy
subtle sublime superb tidy timely tranquil upbeat urbane valid vast vivid wary wistful worthy
zealous"""

NOUNS = """advances anchors bargains baselines beacons benefits bridges bundles bursts ceilings
charms chapters comparisons comforts corners crafts customs debates delays doubts drafts echoes
efforts episodes essays examinations expectations fashions favours festivals fragments furnishings
gaps gardens gestures glimmers habits harvests hazards heights hopes horizons hurdles improvements
insights intuitions journeys landmarks lanterns lessons limits marvels measures mixtures
motives murmurs mysteries notions ties obstacles occasions omens oddments ornaments
outcomes parades patterns pauses pearls phases pillars portions practices premises promises
proofs puzzles quarries rehearsals remedies results revisions rhythms riddles rivers savings
scenarios scruples seasons settings shortcuts sketches spirits strands summits surprises
temptations tensions textures themes threads traditions treasures trends triumphs tuitions
varieties ventures verdicts virtues voyages wagers whispers wonders"""

HEADS = """Amber Apex Argo Astra Atlas Aura Basil Birch Blaze Brisk Cedar Chroma Cinder Citra Clover
Cobalt Comet Coral Crest Crystal Cypher Dahlia Dapple Delta Drift Dusk Echo Elder Ember Fable
Falcon Fern Flint Flora Forge Frost Gala Garnet Ginger Glade Glint Grove Halo Harbor Hazel Helio
Heron Indigo Iris Ivory Jade Jasper Juno Juniper Karma Kestrel Kite Koala Lark Lattice Laurel
Lilac Linden Lotus Lumen Lunar Lyra Magma Maple Marble Marlin Meadow Mica Mint Mirage Mosaic Nectar
Nimbus Noble Nova Oasis Ochre Olive Onyx Opal Orbit Orchid Osprey Otter Panda Pearl Pebble Petal
Phoenix Pine Plume Polar Prism Pulse Quartz Quill Quince Raven Reef Ridge Robin Ruby Sable Saffron
Sage Scout Sierra Silk Sparrow Spruce Summit Swift Tango Teal Terra Thistle Tidal Topaz Tulip
Umber Velvet Verdant Violet Vista Willow Zephyr Zinc"""

TAILS = """Arch Atlas Axis Band Beam Bend Bloom Bolt Bond Bow Brook Cast Chart Chime Clad Clock Coil
Core Craft Crane Crown Dash Dawn Deck Dial Dock Dome Dune Fall Field Fin Flare Fleet Flow Fold Ford
Frame Gate Gaze Gear Gem Glide Glow Grain Guild Gust Haven Helm Hive Hook Horn Isle Jet Keel Keep
Key Knot Lace Lane Leaf Lens Lift Light Line Link Lock Loom Loop Mark Mast Mate Maze Mill Mind Mist
Moor Moss Nest Net Node Pace Pass Path Peak Pier Pilot Pine Plan Play Pod Pond Port Post Press Quay
Quest Quilt Rail Rain Ray Reach Reed Rift Ring Rise Road Rock Root Rope Rush Sail Scope Seed Shade
Shell Shift Shore Span Spark Spin Spire Sport Spring Stem Stone Storm Strand Stride Surge Sweep
Swirl Tale Tide Tower Trace Trail Turn Vale Vault Veil Wave Weave Wind Wing Wood Yard"""
